"""`warptile prove`: is it right."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from warptile import formats, kernels, search, workloads
from warptile.cli import options, show
from warptile.cli.prove_deep import checkers, under_checkers, with_random_shapes
from warptile.cli.prove_view import Proved, again, document, line, summary
from warptile.contracts import CandidateRejected, Kernel, Limits, Problem, UnusableInput, Workload, Wrong
from warptile.contracts.samples import sample_type
from warptile.journal import Journal
from warptile.journal.record import Record
from warptile.tuning.notes import Book
from warptile.tuning.worker_stand import WorkerStand

LEVELS = ("quick", "full", "deep")


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
    weights: Annotated[
        Path | None, typer.Option("--weights", metavar="MODEL", help="A model's matmuls, on rows of its own tensors.")
    ] = None,
    tensor: Annotated[str | None, typer.Option("--tensor", help="One tensor of the model; default: all kinds.")] = None,
    level: Annotated[
        str,
        typer.Option(
            "--level",
            help="quick: seconds. full: minutes, every boundary. deep: also random shapes, instrumented builds and the"
            " vendor's checkers.",
        ),
    ] = "quick",
    budget: Annotated[str, typer.Option("--budget", help="Time for random shapes, at level deep.")] = "2m",
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
    seconds, spare = options.seconds(deadline), options.seconds(budget)
    if tensor and weights is None:
        raise UnusableInput(f"--tensor {tensor}: of which model? give --weights MODEL")
    model = None if weights is None else _model(weights, tensor, format)
    counts = options.token_counts(m)
    named = kernels.parse_tile(tile, kernel)[0] if tile else kernels.by_name(kernel) if kernel else None
    results: list[Proved] = []
    console, errors = show.out(), show.err()
    kept = options.places(state, cache, locks).ready()
    missing = (
        [] if model is None else [f"{count} tensors of {kind}: no format here" for kind, count, _ in model.unsupported]
    )
    with contextlib.closing(WorkerStand(device, kept, model)) as stand:
        limits, identity = stand.describe()
        tools, absent = checkers(limits, device, kept, seed) if level == "deep" else ({}, [])
        missing += absent
        usable = kernels.for_runtime(limits.runtime) if named is None else [named]
        if any(each.runtime != limits.runtime for each in usable):
            raise UnusableInput(f"kernel {usable[0].name} does not run on {device}")
        kind = sample_type(dtype, limits.activations)
        record = Record(Journal(kept.state / "journal"), identity, limits, options.asked(context, "prove", because))
        book = Book(record, {each.name: each for each in usable})
        record.start(seed=seed, level=level)
        if model is None:
            names = [formats.by_name(format).name] if format else list(formats.all_formats())
            dense = [Problem(name, n, k, each, kind, kind) for name in names for each in counts]
            wanted = _problems(dense, experts, top_k)
        else:
            wanted = _of_model(model, counts, kind)
        for problem in wanted:
            if problem.k % formats.by_name(problem.format).block_size:
                raise UnusableInput(f"{problem.format}: k = {k} is no whole number of blocks")
            own = _tensor(model, problem)
            for text in _tiles(tile, usable, problem, limits):
                errors.print(Text(f"proving {problem.text()}  {show.tile(text)}"), soft_wrap=True)
                repeat = again(device, text, problem, level, seed, str(weights) if weights and own else "", own)
                try:
                    proof = stand.prove(text, [problem], seed, seconds, level)
                except CandidateRejected as error:
                    book.reject(text, problem, error, seconds)
                    results.append(Proved(text, problem, False, f"{error.outcome}: {error}", None, own, repeat=repeat))
                else:
                    book.proof(text, problem, [problem.k], proof)
                    verdict = proof.verdict
                    reason = f"{verdict.failed}: {verdict.detail}" if verdict.failed else verdict.detail
                    results.append(Proved(text, problem, verdict.right, reason, verdict, own, repeat=repeat))
                if not json and level != "deep":
                    console.print(line(results[-1]), soft_wrap=True)
        if level == "deep":
            drawn = with_random_shapes(stand, results, spare, seed, seconds, errors)
    if level == "deep":
        # The tools open the device in processes of their own, so the stand's worker must be gone.
        checked = under_checkers(tools, drawn, seconds, errors)
        for before, each in zip(results, checked, strict=True):
            if before.right and not each.right:
                book.reject(each.tile, each.problem, Wrong(each.reason), seconds)
        results = checked
        for each in results if not json else ():
            console.print(line(each), soft_wrap=True)
    record.end(tried=len(results), rejected=sum(not each.right for each in results))
    if not results:
        raise UnusableInput("nothing to prove: no kernel has a valid tile for these formats and shapes on this device")
    if json:
        show.print_json(document(results, usable, missing, level, device))
    else:
        for said in summary(results, usable, missing):
            console.print(said, soft_wrap=True)
    raise typer.Exit(0 if all(each.right for each in results) else 1)


def _model(path: Path, tensor: str | None, format: str | None) -> Workload:
    """The model's matmuls, of one tensor or format where asked. Raises UnusableInput where it has none such."""
    model = workloads.from_gguf(path)
    rows = [row for row in model.rows if format is None or row.format == formats.by_name(format).name]
    if tensor is not None:
        rows = [dataclasses.replace(row, tensors=(tensor,)) for row in rows if tensor in row.tensors]
    if not rows:
        what = " ".join(word for word in (tensor and f"tensor {tensor!r}", format and f"format {format}") if word)
        raise UnusableInput(f"{path}: no quantized matmul{f' of {what}' if what else ''}")
    return dataclasses.replace(model, rows=tuple(rows))


def _of_model(model: Workload, counts: tuple[int, ...], kind: str) -> list[Problem]:
    """Every matmul of a model at every number of tokens, each once."""
    found = (p for m in counts for p in model.problems(m))
    return list(dict.fromkeys(dataclasses.replace(p, count=1, x_dtype=kind, y_dtype=kind) for p in found))


def _tensor(model: Workload | None, problem: Problem) -> str:
    """The tensor whose rows stand for a problem's weights; "" where they are drawn."""
    rows = () if model is None or problem.grouped else model.rows
    of = (row.tensors[0] for row in rows if (row.format, row.n, row.k) == (problem.format, problem.n, problem.k))
    return next(of, "")


def _problems(dense: list[Problem], experts: int, top_k: int) -> list[Problem]:
    """The problems, or, by experts, both forms of each: a row of x a token, and one for each expert taken, summed."""
    if not experts:
        return dense
    if top_k > experts:
        raise UnusableInput(f"--top-k {top_k}: a token cannot take more than {experts} experts")
    kind = {"experts": experts, "top_k": top_k, "routing": "uniform"}
    grouped = [dataclasses.replace(p, **kind) for p in dense]  # type: ignore[arg-type]
    return [q for p in grouped for q in (p, dataclasses.replace(p, x_slots=True, summed=True))]


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
