"""`warptile journal list|search|show|merge|handover`: what was tried, and what to do next."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from warptile.cli import journal_stats, options, show
from warptile.cli.journal_view import conflicts
from warptile.cli.tune_view import grid
from warptile.contracts import UnusableInput
from warptile.journal import KINDS, Journal, warning_lines
from warptile.journal.index import Hit, Index
from warptile.journal.store import Line, read_lines

app = typer.Typer(help="What was tried: list, search, show, merge, handover, stats.", no_args_is_help=False)
app.command("stats")(journal_stats.stats)

Kind = Annotated[str | None, typer.Option("--kind", help=f"One of {', '.join(KINDS)}.")]
Format = Annotated[str | None, typer.Option("--format", help="Of weights, such as Q4_K.")]
OfRun = Annotated[str | None, typer.Option("--run", help="One run's name.")]
Name = Annotated[str, typer.Option("--device", help="Part of a device's name.")]
Kernel = Annotated[str, typer.Option("--kernel", help="Such as gemm, or triton.gemm.")]
Since = Annotated[str, typer.Option("--since", help="First UTC day or time, such as 2026-11-30 or 2026-11-30T22:00.")]
Until = Annotated[str, typer.Option("--until", help="Last UTC day or time.")]
Limit = Annotated[int, typer.Option("--limit", min=1)]


@app.callback()
def _group() -> None:
    """What was tried."""


def journal_of(state: Path | None) -> Journal:
    """The journal of a state folder."""
    return Journal(options.places(state, None).state / "journal")


@app.command("list")
def list_entries(
    kind: Kind = None,
    format: Format = None,
    run: OfRun = None,
    device: Name = "",
    kernel: Kernel = "",
    since: Since = "",
    until: Until = "",
    limit: Limit = 30,
    json: options.Json = False,
    state: options.State = None,
) -> None:
    """List the newest entries, newest last."""
    _listed("", kind, format, run, device, kernel, since, until, limit, json, state)


@app.command("search")
def search_entries(
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="An entry must hold every one of them.")],
    kind: Kind = None,
    format: Format = None,
    run: OfRun = None,
    device: Name = "",
    kernel: Kernel = "",
    since: Since = "",
    until: Until = "",
    limit: Limit = 30,
    json: options.Json = False,
    state: options.State = None,
) -> None:
    """Search the texts of all entries: reasons, hypotheses, tiles, drivers, errors, command lines."""
    _listed(" ".join(words), kind, format, run, device, kernel, since, until, limit, json, state)


def _listed(
    text: str,
    kind: str | None,
    format: str | None,
    run: str | None,
    device: str,
    kernel: str,
    since: str,
    until: str,
    limit: int,
    json: bool,
    state: Path | None,
) -> None:
    if kind is not None and kind not in KINDS:
        raise UnusableInput(f"no kind {kind!r}; kinds are {', '.join(KINDS)}")
    for name, moment in (("since", since), ("until", until)):
        if moment and not re.fullmatch(r"\d{4}(-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d)?)?)?)?)?", moment):
            raise UnusableInput(f"--{name} {moment!r} is no day or time such as 2026-11-30 or 2026-11-30T22:00")
    journal = journal_of(state)
    equal = {name: value for name, value in (("kind", kind), ("format", format), ("run", run)) if value is not None}

    def search(index: Index) -> list[Hit]:
        return index.search(text, kernel, device, since.replace(" ", "T"), until.replace(" ", "T"), limit, **equal)

    try:
        hits, warnings = _indexed(journal, index_path(journal), search)
    except UnusableInput:
        # The index is a cache: where a full disk or another process keeps it from being written, memory does.
        hits, warnings = _indexed(journal, ":memory:", search)
    hits.reverse()
    for warning in warnings:
        show.err().print(show.line(warning, "yellow"), soft_wrap=True)
    if json:
        plain = [{name: value for name, value in vars(hit).items() if name != "words"} for hit in hits]
        show.print_json({"folder": str(journal.folder), "entries": plain, "warnings": warnings})
        return
    console = show.out()
    for name, lines in itertools.groupby(hits, lambda hit: hit.run):
        table = grid()
        table.add_column("line", justify="right", no_wrap=True)
        table.add_column("kind", min_width=max(map(len, KINDS)), no_wrap=True)
        table.add_column("matmul, tile", min_width=43)
        table.add_column("outcome")
        for hit in lines:
            table.add_row(str(hit.seq), hit.kind, _matmul(hit), show.wrapping(hit.outcome))
            if hit.tile:
                table.add_row("", "", show.wrapping(show.tile(hit.tile), "dim"), "")
        console.print(show.text(f"run {name}", "bold"), soft_wrap=True)
        console.print(table)
    if hits:
        console.print(
            Text(
                "an entry: warptile journal show RUN:LINE; of RUN its last eight characters will do",
                style="dim",
            )
        )
    else:
        console.print(Text(f"no entries in {show.path(journal.folder)}"), soft_wrap=True)


def _indexed(journal: Journal, path: str, search: Callable[[Index], list[Hit]]) -> tuple[list[Hit], list[str]]:
    """What a search of the index at `path` gives, and a line for each file with lines that are amiss."""
    with Index(path) as index:
        index.refresh(journal)
        return search(index), warning_lines(index.warnings)


def index_path(journal: Journal) -> str:
    """In the journal's folder where it can be kept there; else in memory, made anew from the lines."""
    path = journal.folder / "index.sqlite"
    kept = os.access(journal.folder, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))
    return str(path) if kept else ":memory:"


def _matmul(hit: Hit) -> Text:
    return show.text(f"{hit.format} n={hit.n} k={hit.k}" + (f" m={hit.m}" if hit.m else "") if hit.format else "")


@app.command("show")
def show_entry(
    entry: Annotated[str, typer.Argument(metavar="RUN[:LINE]", help="A run's name, or one of its lines.")],
    json: options.Json = False,
    state: options.State = None,
) -> None:
    """Print one entry, or every entry of a run, as JSON."""
    journal = journal_of(state)
    name, _, number = entry.partition(":")
    files = [file for file in journal.files() if file.stem.startswith(name) or file.stem.endswith(f"-{name}")]
    if len(files) != 1 or not name:
        found = f"{len(files)} runs" if files else "no run"
        which = f": {', '.join(file.stem for file in files[-3:])}" if files else ""
        raise UnusableInput(f"{found} whose name begins or ends with {name!r} in {journal.folder}{which}")
    if number and not number.isdecimal():
        raise UnusableInput(f"{entry!r} is no RUN:LINE")
    lines = [line for line in read_lines(files[0]) if isinstance(line, Line)]
    chosen = [line for line in lines if not number or line.entry["seq"] == int(number)]
    if not chosen:
        raise UnusableInput(f"run {files[0].stem} has no entry in line {number}")
    for line in chosen:
        if line.edited:
            told = f"{files[0].name}, line {line.number}: changed since it was written"
            show.err().print(show.line(told, "yellow"), soft_wrap=True)
    value = chosen[0].entry if number else [line.entry for line in chosen]
    if json:
        show.print_json(value)
    else:
        show.out().print_json(data=value)


@app.command("merge")
def merge_files(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Other machines' .jsonl or .jsonl.gz files, or folders."),
    ],
    json: options.Json = False,
    state: options.State = None,
) -> None:
    """Take other machines' journals in, every entry once; show what disagrees side by side. Exit 1 on a conflict."""
    from warptile.journal.merge import merge

    journal = journal_of(state)
    merged = merge(journal, sources)
    warnings = warning_lines(merged.warnings)
    for warning in warnings:
        show.err().print(show.line(warning, "yellow"), soft_wrap=True)
    if json:
        show.print_json({**vars(merged), "warnings": warnings, "folder": str(journal.folder)})
    else:
        console = show.out()
        runs = f", {len(merged.runs)} new runs" if merged.runs else ""
        console.print(Text(f"{merged.added} entries taken{runs}, {merged.known} were here already"))
        conflicts(console, "different entries of one number; this journal's stays", merged.conflicts)
        conflicts(console, "different winners; both are kept, and rebuild takes the newer", merged.disagreements)
    if merged.conflicts:
        raise typer.Exit(1)


@app.command("handover")
def handover_document(
    device: Annotated[
        str, typer.Option("--device", help="Part of a device's name, RUNTIME:PART, or RUNTIME: for any device of it.")
    ] = "",
    format: Format = None,
    out: Annotated[Path | None, typer.Option("--out", help="A file to write; default: stdout.")] = None,
    levers: Annotated[int, typer.Option("--levers", min=0, help="Matmuls of each M to look for untried tiles on.")] = 2,
    state: options.State = None,
) -> None:
    """Write one Markdown document that a stranger can continue from.

    The question, the champions and their evidence, every hypothesis with its prediction and outcome, rejected ones
    included, open levers by what they promise, and the command that repeats each row.
    """
    from warptile.cli.reading import told
    from warptile.handover import handover, parts_of

    journal = journal_of(state)
    reading = journal.read()
    runtime, _, name = device.rpartition(":")
    history = told(reading).only(name or None, runtime or None, format)
    parts = parts_of(history)
    if not parts:
        raise UnusableInput(f"journal {journal.folder}: nothing was proved, raced or decided{_asked(device, format)}")
    text = handover(parts, levers, warning_lines(reading.warnings))
    if out is None:
        show.print_text(text)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UnusableInput(f"{out}: cannot be written: {error.strerror or error}") from None
    show.out().print(Text(f"written to {show.path(out)}"), soft_wrap=True)


def _asked(device: str, format: str | None) -> str:
    return (f" on a device named {device!r}" if device else "") + (f" in {format}" if format else "")
