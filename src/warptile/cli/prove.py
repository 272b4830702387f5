"""`warptile prove`: is it right."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from warptile import formats, kernels, search
from warptile.cli import options, show
from warptile.contracts import CandidateRejected, Kernel, Limits, Problem, UnusableInput, Verdict, Wrong
from warptile.contracts.samples import sample_type
from warptile.journal import Journal
from warptile.journal.record import Record
from warptile.places import Places
from warptile.proof.sanitizer import TOOLS, Sanitized, sanitize, sanitizer
from warptile.tuning.notes import Book
from warptile.tuning.worker_stand import WorkerStand

LEVELS = ("quick", "full", "deep")
CASES_A_RUN = 24
DETAIL = "\n       "


@dataclasses.dataclass(frozen=True)
class Proved:
    """One proof: a tile on a problem; verdict None where the candidate was out before one (`reason`).

    sanitized: what each of compute-sanitizer's tools said, at level deep.
    """

    tile: str
    problem: Problem
    right: bool
    reason: str
    verdict: Verdict | None
    sanitized: tuple[Sanitized, ...] = ()


def prove(
    context: typer.Context,
    device: options.Device = options.FIRST_DEVICE,
    kernel: Annotated[str | None, typer.Option("--kernel", help="One kernel; default: every kernel here.")] = None,
    tile: Annotated[
        str | None, typer.Option("--tile", help="One tile; default: stock and the best-priced one.")
    ] = None,
    format: Annotated[str | None, typer.Option("--format", help="One format; default: every format.")] = None,
    n: Annotated[int, typer.Option(min=1)] = 512,
    k: Annotated[int, typer.Option(min=1)] = 512,
    m: options.Ms = "1,128",
    experts: Annotated[int, typer.Option("--experts", min=0, help="Grouped matmuls of so many experts.")] = 0,
    top_k: Annotated[int, typer.Option("--top-k", min=1, help="Experts a token takes.")] = 2,
    level: Annotated[
        str, typer.Option("--level", help="quick, full, or deep: quick, and again under compute-sanitizer.")
    ] = "quick",
    dtype: options.Dtype = None,
    deadline: Annotated[str, typer.Option("--deadline", help="Time one proof may take.")] = "5m",
    seed: options.Seed = 0,
    because: options.Because = "",
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
    kept = options.places(state, cache, locks).ready()
    with contextlib.closing(WorkerStand(device, kept)) as stand:
        limits, identity = stand.describe()
        if level == "deep":
            if limits.runtime != "cuda" or limits.kind != "gpu":
                raise UnusableInput(f"level deep needs an NVIDIA card through CUDA; {device} is {limits.name}")
            sanitizer()
        usable = kernels.for_runtime(limits.runtime) if named is None else [named]
        if any(each.runtime != limits.runtime for each in usable):
            raise UnusableInput(f"kernel {usable[0].name} does not run on {device}")
        kind = sample_type(dtype, limits.activations)
        record = Record(Journal(kept.state / "journal"), identity, limits, options.asked(context, "prove", because))
        book = Book(record, {each.name: each for each in usable})
        record.start(seed=seed, level=level)
        for problem in _problems(
            [Problem(name, n, k, each, kind, kind) for name in names for each in counts], experts, top_k
        ):
            if problem.k % formats.by_name(problem.format).block_size:
                raise UnusableInput(f"{problem.format}: k = {k} is no whole number of blocks")
            for text in _tiles(tile, usable, problem, limits):
                errors.print(Text(f"proving {problem.text()}  {show.tile(text)}"), soft_wrap=True)
                try:
                    proof = stand.prove(text, [problem], seed, seconds, "full" if level == "full" else "quick")
                except CandidateRejected as error:
                    book.reject(text, problem, error, seconds)
                    results.append(Proved(text, problem, False, f"{error.outcome}: {error}", None))
                else:
                    book.proof(text, problem, [problem.k], proof)
                    verdict = proof.verdict
                    reason = f"{verdict.failed}: {verdict.detail}" if verdict.failed else verdict.detail
                    results.append(Proved(text, problem, verdict.right, reason, verdict))
                if not json:
                    console.print(_line(results[-1]), soft_wrap=True)
        if level == "deep":
            results = _deep(results, device, kept, seed, seconds, errors, console if not json else None)
            for each in results:
                if each.sanitized and not each.right:
                    book.reject(each.tile, each.problem, Wrong(each.reason), seconds)
        record.end(tried=len(results), rejected=sum(not each.right for each in results))
    if not results:
        raise UnusableInput("nothing to prove: no kernel has a valid tile for these formats and shapes on this device")
    wrong = sum(not each.right for each in results)
    if json:
        show.print_json({"right": wrong == 0, "proofs": results})
    else:
        console.print(Text(f"{len(results) - wrong} right, {wrong} wrong", style="bold red" if wrong else "bold green"))
    raise typer.Exit(1 if wrong else 0)


def _problems(dense: list[Problem], experts: int, top_k: int) -> list[Problem]:
    """The problems, or, by experts, both forms of each: a row of x a token, and one for each expert taken, summed."""
    if not experts:
        return dense
    if top_k > experts:
        raise UnusableInput(f"--top-k {top_k}: a token cannot take more than {experts} experts")
    kind = {"experts": experts, "top_k": top_k, "routing": "uniform"}
    grouped = [dataclasses.replace(p, **kind) for p in dense]  # type: ignore[arg-type]
    return [q for p in grouped for q in (p, dataclasses.replace(p, x_slots=True, summed=True))]


def _deep(
    results: list[Proved],
    device: str,
    places: Places,
    seed: int,
    seconds: float,
    errors: Console,
    console: Console | None,
) -> list[Proved]:
    """The right ones of `results` proved again under each of compute-sanitizer's tools; wrong where one objects.

    seconds: for each proof, as without the tool.
    """
    right = [number for number, each in enumerate(results) if each.right]
    for tool in TOOLS:
        for start in range(0, len(right), CASES_A_RUN):
            part = right[start : start + CASES_A_RUN]
            errors.print(Text(f"{tool} over {len(part)} tiles"), soft_wrap=True)
            cases = [(results[number].tile, results[number].problem) for number in part]
            for number, found in zip(
                part, sanitize(tool, device, cases, places, seed, seconds * len(part)), strict=True
            ):
                one = results[number]
                said = "; ".join(text for text in (one.reason, found.text()) if text)
                results[number] = dataclasses.replace(
                    one, right=one.right and found.good, reason=said, sanitized=(*one.sanitized, found)
                )
    if console is not None:
        for number in right:
            console.print(_line(results[number]), soft_wrap=True)
    return results


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
