"""`warptile prove`: is it right."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Annotated

import typer
from rich.text import Text

from warptile import formats, kernels, search
from warptile.cli import options, show
from warptile.contracts import CandidateRejected, Kernel, Limits, Problem, UnusableInput, Verdict
from warptile.contracts.samples import sample_type
from warptile.tuning.worker_stand import WorkerStand

LEVELS = ("quick", "full")
DETAIL = "\n       "


@dataclasses.dataclass(frozen=True)
class Proved:
    """One proof: a tile on a problem; verdict None where the candidate was out before one (`reason`)."""

    tile: str
    problem: Problem
    right: bool
    reason: str
    verdict: Verdict | None


def prove(
    device: options.Device = options.FIRST_DEVICE,
    kernel: Annotated[str | None, typer.Option("--kernel", help="One kernel; default: every kernel here.")] = None,
    tile: Annotated[
        str | None, typer.Option("--tile", help="One tile; default: stock and the best-priced one.")
    ] = None,
    format: Annotated[str | None, typer.Option("--format", help="One format; default: every format.")] = None,
    n: Annotated[int, typer.Option(min=1)] = 512,
    k: Annotated[int, typer.Option(min=1)] = 512,
    m: options.Ms = "1,128",
    level: Annotated[str, typer.Option("--level", help="quick or full.")] = "quick",
    dtype: options.Dtype = None,
    deadline: Annotated[str, typer.Option("--deadline", help="Time one proof may take.")] = "5m",
    seed: options.Seed = 0,
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
    locks: options.Locks = None,
) -> None:
    """Prove tiles on a device: every output element right and written, in bounds, deterministic, by that binary."""
    if level not in LEVELS:
        raise UnusableInput(f"proof level {level!r} is not known; levels are {', '.join(LEVELS)}")
    seconds = options.seconds(deadline)
    names = [formats.by_name(format).name] if format else list(formats.all_formats())
    counts = options.token_counts(m)
    named = kernels.parse_tile(tile, kernel)[0] if tile else kernels.by_name(kernel) if kernel else None
    results: list[Proved] = []
    console, errors = show.out(), show.err()
    with contextlib.closing(WorkerStand(device, options.places(state, cache, locks).ready())) as stand:
        limits, _ = stand.describe()
        usable = kernels.for_runtime(limits.runtime) if named is None else [named]
        if any(each.runtime != limits.runtime for each in usable):
            raise UnusableInput(f"kernel {usable[0].name} does not run on {device}")
        kind = sample_type(dtype, limits.activations)
        for problem in [Problem(name, n, k, each, kind, kind) for name in names for each in counts]:
            if problem.k % formats.by_name(problem.format).block_size:
                raise UnusableInput(f"{problem.format}: k = {k} is no whole number of blocks")
            for text in _tiles(tile, usable, problem, limits):
                errors.print(Text(f"proving {problem.text()}  {show.tile(text)}"), soft_wrap=True)
                try:
                    verdict = stand.prove(text, [problem], seed, seconds, level).verdict
                except CandidateRejected as error:
                    results.append(Proved(text, problem, False, f"{error.outcome}: {error}", None))
                else:
                    reason = f"{verdict.failed}: {verdict.detail}" if verdict.failed else verdict.detail
                    results.append(Proved(text, problem, verdict.right, reason, verdict))
                if not json:
                    console.print(_line(results[-1]), soft_wrap=True)
    if not results:
        raise UnusableInput("nothing to prove: no kernel has a valid tile for these formats and shapes on this device")
    wrong = sum(not each.right for each in results)
    if json:
        show.print_json({"right": wrong == 0, "proofs": results})
    else:
        console.print(Text(f"{len(results) - wrong} right, {wrong} wrong", style="bold red" if wrong else "bold green"))
    raise typer.Exit(1 if wrong else 0)


def _tiles(tile: str | None, usable: list[Kernel], problem: Problem, limits: Limits) -> list[str]:
    """The given tile in full; else, of every kernel, the stock tile and the best-priced one, where valid."""
    if tile is not None:
        return [kernels.parse_tile(tile, usable[0].name)[1].text()]
    texts: dict[str, None] = {}
    for kernel in usable:
        stock = kernel.stock(problem, limits)
        if stock is not None and not kernel.broken_rules(stock, problem, limits):
            texts[stock.text()] = None
        for found in search.rank(problem, limits, [kernel])[:1]:
            texts[found.tile.text()] = None
    return list(texts)


def _line(proved: Proved) -> Text:
    line = Text("right  " if proved.right else "WRONG  ", style="green" if proved.right else "bold red")
    line.append(f"{proved.problem.text()}  {show.tile(proved.tile)}", style="default")
    verdict = proved.verdict
    if verdict is not None and proved.right:
        what = f"{len(verdict.shapes)} shapes, NMSE {verdict.nmse:.1e}, error {verdict.worst_ratio:.0%} of its bound"
        line.append(f"{DETAIL}{what}", style="dim")
    if proved.reason:
        line.append(f"{DETAIL}{' '.join(proved.reason.split())}", style="default")
    return line
