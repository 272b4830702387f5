"""`warptile journal list|show`: what was tried."""

from __future__ import annotations

import itertools
import os
from typing import Annotated

import typer
from rich.text import Text

from warptile.cli import journal_stats, options, show
from warptile.cli.tune_view import grid
from warptile.contracts import UnusableInput
from warptile.journal import KINDS, Journal, warning_lines
from warptile.journal.index import Hit, Index
from warptile.journal.store import Line, read_lines

app = typer.Typer(help="What was tried: list, show, stats.", no_args_is_help=False)
app.command("stats")(journal_stats.stats)


@app.callback()
def _group() -> None:
    """What was tried."""


@app.command("list")
def list_entries(
    kind: Annotated[str | None, typer.Option("--kind", help=f"One of {', '.join(KINDS)}.")] = None,
    format: Annotated[str | None, typer.Option("--format")] = None,
    run: Annotated[str | None, typer.Option("--run", help="One run's name.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1)] = 30,
    json: options.Json = False,
    state: options.State = None,
) -> None:
    """List the newest entries, newest last."""
    if kind is not None and kind not in KINDS:
        raise UnusableInput(f"no kind {kind!r}; kinds are {', '.join(KINDS)}")
    journal = Journal(options.places(state, None).state / "journal")
    equal = {name: value for name, value in (("kind", kind), ("format", format), ("run", run)) if value is not None}
    with Index(index_path(journal)) as index:
        index.refresh(journal)
        hits = list(reversed(index.find(limit, **equal)))
        warnings = warning_lines(index.warnings)
    for warning in warnings:
        show.err().print(show.line(warning, "yellow"), soft_wrap=True)
    if json:
        show.print_json({"folder": str(journal.folder), "entries": hits, "warnings": warnings})
        return
    console = show.out()
    for name, lines in itertools.groupby(hits, lambda hit: hit.run):
        table = grid()
        table.add_column("line", justify="right", no_wrap=True)
        table.add_column("kind", min_width=max(map(len, KINDS)), no_wrap=True)
        table.add_column("matmul, tile", min_width=43)
        table.add_column("outcome")
        for hit in lines:
            table.add_row(str(hit.line), hit.kind, _matmul(hit), show.wrapping(hit.outcome))
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
    journal = Journal(options.places(state, None).state / "journal")
    name, _, number = entry.partition(":")
    files = [file for file in journal.files() if file.stem.startswith(name) or file.stem.endswith(f"-{name}")]
    if len(files) != 1 or not name:
        found = f"{len(files)} runs" if files else "no run"
        which = f": {', '.join(file.stem for file in files[-3:])}" if files else ""
        raise UnusableInput(f"{found} whose name begins or ends with {name!r} in {journal.folder}{which}")
    if number and not number.isdecimal():
        raise UnusableInput(f"{entry!r} is no RUN:LINE")
    lines = [line for line in read_lines(files[0]) if isinstance(line, Line)]
    chosen = [line.entry for line in lines if not number or line.number == int(number)]
    if not chosen:
        raise UnusableInput(f"run {files[0].stem} has no entry in line {number}")
    value = chosen[0] if number else chosen
    if json:
        show.print_json(value)
    else:
        show.out().print_json(data=value)
