"""What `warptile prove` prints: a line a proof, what was reached, and what to repeat."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from warptile.cli import show
from warptile.contracts import Kernel, Problem, Verdict
from warptile.proof.sanitizer import Sanitized

DETAIL = "\n       "


@dataclasses.dataclass(frozen=True)
class Proved:
    """One proof: a tile on a problem; verdict None where the candidate was out before one (`reason`).

    tensor: the model's tensor whose rows were proved beside drawn ones. At level deep also what random shapes said, and
    each of the vendor's tools (sanitized). repeat: the command that proves it again.
    """

    tile: str
    problem: Problem
    right: bool
    reason: str
    verdict: Verdict | None
    tensor: str = ""
    random: Verdict | None = None
    sanitized: tuple[Sanitized, ...] = ()
    repeat: str = ""


@dataclasses.dataclass(frozen=True)
class Reached:
    """What of a kernel was proved, right or wrong: its tiles, formats, and how many shapes they ran on."""

    kernel: str
    tiles: tuple[str, ...]
    formats: tuple[str, ...]
    shapes: int


def line(proved: Proved) -> Text:
    """A proof: right or WRONG, of what, how near its bound, and why."""
    said = Text("right  " if proved.right else "WRONG  ", style="green" if proved.right else "bold red")
    said.append(f"{proved.problem.text()}  {show.tile(proved.tile)}", style="default")
    if proved.tensor:
        said.append(f"  {proved.tensor}", style="default")
    verdict = proved.verdict
    if verdict is not None and proved.right:
        what = f"{len(verdict.shapes)} shapes, NMSE {verdict.nmse:.1e}, error {verdict.worst_ratio:.0%} of its bound"
        said.append(f"{DETAIL}{what}", style="dim")
    if proved.reason:
        said.append(f"{DETAIL}{' '.join(proved.reason.split())}", style="default")
    if not proved.right:
        said.append(f"{DETAIL}again: {proved.repeat}", style="default")
    return said


def reached(results: Sequence[Proved], asked: Sequence[Kernel]) -> tuple[list[Reached], list[str]]:
    """By kernel, what the proofs ran on; and the kernels that none ran on, since no tile of theirs is valid here."""
    found: dict[str, list[Proved]] = {}
    for each in results:
        if each.verdict is not None:
            found.setdefault(each.tile.partition(":")[0], []).append(each)
    rows = [
        Reached(
            kernel,
            tuple(dict.fromkeys(each.tile for each in proofs)),
            tuple(dict.fromkeys(each.problem.format for each in proofs)),
            sum(len(v.shapes) for each in proofs for v in (each.verdict, each.random) if v is not None),
        )
        for kernel, proofs in sorted(found.items())
    ]
    return rows, [kernel.name for kernel in asked if kernel.name not in found]


def summary(results: Sequence[Proved], asked: Sequence[Kernel], missing: Sequence[str]) -> list[Text]:
    """The last lines: what was reached, what was not, and how many were right."""
    rows, unreached = reached(results, asked)
    lines = [
        Text(f"{each.kernel}: {len(each.tiles)} tiles, {len(each.formats)} formats, {each.shapes} shapes", style="dim")
        for each in rows
    ]
    if unreached:
        lines.append(Text(f"not reached, no valid tile here: {', '.join(unreached)}", style="dim"))
    lines += [Text(f"not run: {each}", style="yellow") for each in missing]
    wrong = sum(not each.right for each in results)
    style = "bold red" if wrong else "bold green"
    return [*lines, Text(f"{len(results) - wrong} right, {wrong} wrong", style=style)]


def document(
    results: Sequence[Proved], asked: Sequence[Kernel], missing: Sequence[str], level: str, device: str
) -> dict[str, Any]:
    """The same as one JSON document."""
    rows, unreached = reached(results, asked)
    return {
        "right": all(each.right for each in results),
        "device": device,
        "level": level,
        "reached": rows,
        "unreached": unreached,
        "missing": list(missing),
        "proofs": list(results),
    }


def again(device: str, tile: str, problem: Problem, level: str, seed: int, model: str = "", tensor: str = "") -> str:
    """The command that repeats one proof: same tile, problem, level and seed."""
    words = ["warptile", "prove", "--device", device, "--tile", tile, "--level", level, "--seed", str(seed)]
    if model:
        words += ["--weights", model, "--tensor", tensor, "--m", str(problem.m)]
    else:
        words += ["--format", problem.format, "--n", str(problem.n), "--k", str(problem.k), "--m", str(problem.m)]
    if problem.x_dtype != "fp32":
        words += ["--dtype", problem.x_dtype]
    if problem.grouped:
        words += ["--experts", str(problem.experts), "--top-k", str(problem.top_k)]
    return shlex.join(words)
