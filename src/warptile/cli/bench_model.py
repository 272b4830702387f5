"""`warptile bench model`: rates of a whole model, beside llama-bench's where it is asked."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as Grid
from rich.text import Text

from warptile.bench.llama_bench import run_llama_bench
from warptile.bench.model import ModelReport, RateRow, Tests, bench_model
from warptile.cli import options, show
from warptile.cli.tune_view import grid
from warptile.contracts import UnusableInput

_MOST_TOKENS = 1 << 22
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A .gguf file.")]


def model(
    path: ModelFile,
    device: Annotated[
        str | None, typer.Option("--device", help="cuda:N or vulkan:N; default: the first there is.")
    ] = None,
    prompts: Annotated[
        str, typer.Option("-p", "--n-prompt", help="Tokens of a prefill, such as 128,512; 0: none.")
    ] = "512",
    generated: Annotated[str, typer.Option("-n", "--n-gen", help="Tokens to decode; 0: none.")] = "128",
    depths: Annotated[str, typer.Option("-d", "--n-depth", help="Tokens there before, such as 0,16384.")] = "0",
    repetitions: Annotated[int, typer.Option("-r", "--repetitions", min=1, max=1000)] = 5,
    cpu: Annotated[bool, typer.Option("--cpu", help="Also the decoded fp32 model on the processor.")] = False,
    versus: Annotated[
        Path | None, typer.Option("--versus", metavar="PATH", help="Your own llama-bench, run on the same file.")
    ] = None,
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
) -> None:
    """Tokens per second of prefill and decode, as llama-bench counts them, and time to the first token."""
    tests = Tests(_counts("-p", prompts), _counts("-n", generated), _counts("-d", depths, least=0), repetitions)
    if not tests.cases():
        raise UnusableInput("-p 0 -n 0 leaves nothing to measure")
    if versus is not None and not versus.is_file():
        raise UnusableInput(f"--versus {versus}: no such file")
    errors = show.err()

    def say(line: str) -> None:
        errors.print(Text(line), soft_wrap=True)

    report = bench_model(path, device, tests, cpu, options.places(state, cache), say)
    theirs: tuple[str, tuple[RateRow, ...]] | None = None
    failed: UnusableInput | None = None
    if versus is not None:
        say(f"running {versus}")
        try:
            theirs = run_llama_bench(versus, path, tests)
        except UnusableInput as error:
            failed = error  # raised below: this program's rows took minutes and are shown first
    if json:
        show.print_json(_document(report, theirs))
    else:
        _print(report, theirs)
    if failed is not None:
        raise failed


def _counts(option: str, text: str, least: int = 0) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"\d{1,7}", part) and least <= int(part) <= _MOST_TOKENS for part in parts):
        raise UnusableInput(f"{option} {text!r} is no list of numbers of tokens such as 128,512")
    return tuple(dict.fromkeys(int(part) for part in parts))


def _document(report: ModelReport, theirs: tuple[str, tuple[RateRow, ...]] | None) -> dict[str, object]:
    document = dataclasses.asdict(report)
    for name in ("rows", "reference"):
        document[name] = [_row(row) for row in getattr(report, name)]
    if theirs is not None:
        document["versus"] = {"device": theirs[0], "rows": [_row(row) for row in theirs[1]]}
    return document


def _row(row: RateRow) -> dict[str, object]:
    return dataclasses.asdict(row) | {"mean": row.mean, "spread": row.spread}


def _print(report: ModelReport, theirs: tuple[str, tuple[RateRow, ...]] | None) -> None:
    console = show.out()
    table: Grid = grid()
    table.add_column("test", no_wrap=True)
    for name in (
        "tokens/s",
        "in matmuls",
        *(["processor"] if report.reference else []),
        *(["llama-bench", "ratio"] if theirs else []),
    ):
        table.add_column(name, justify="right", no_wrap=True)
    reference = {row.label: row for row in report.reference}
    other = {row.label: row for row in theirs[1]} if theirs else {}
    for row in report.rows:
        cells = [row.label, _rate(row), "-" if row.matmul_share is None else f"{row.matmul_share:.0%}"]
        if report.reference:
            cells.append(_rate(reference.get(row.label)))
        if theirs:
            peer = other.get(row.label)
            cells += [_rate(peer), "-" if peer is None else f"{row.mean / peer.mean:.2f}x"]
        table.add_row(*cells)
    how = f"{report.dtype}{', CUDA graphs' if report.graphs else ''}"
    console.print(show.text(f"{report.model} on {report.device}, {how}", "bold"))
    console.print(table)
    first = f"{report.load_seconds + report.first_token_seconds:.2f} s"
    console.print(
        Text(
            f"file to first token of a prompt of {report.prompt}: {first} "
            f"(load {show.duration(report.load_seconds)}, prompt {show.duration(report.first_token_seconds)})"
        )
    )
    if theirs:
        console.print(show.text(f"llama-bench: {theirs[0]}", "dim"))
    for label, reason in report.left_out:
        console.print(show.text(f"{label}: {reason}", "yellow"))


def _rate(row: RateRow | None) -> str:
    if row is None:
        return "-"
    return f"{show.significant(row.mean)} ± {show.significant(row.spread)}"
