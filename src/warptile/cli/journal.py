"""`warptile journal list|show`: what was tried."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from warptile.cli import options, show
from warptile.cli.tune_view import grid
from warptile.contracts import UnusableInput
from warptile.journal import KINDS, Journal
from warptile.journal.index import Hit, Index
from warptile.journal.store import Line, read_lines

app = typer.Typer(help="What was tried: list, show.", no_args_is_help=False)


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
    with Index(_index_path(journal)) as index:
        index.refresh(journal)
        hits = list(reversed(index.find(limit, **equal)))
        warnings = [warning.text() for warning in index.warnings]
    for warning in warnings:
        show.err().print(Text(warning, style="yellow"), soft_wrap=True)
    if json:
        show.print_json({"folder": str(journal.folder), "entries": hits, "warnings": warnings})
        return
    table = grid()
    for name in ("entry", "kind", "what", "outcome"):
        table.add_column(name, overflow="fold", no_wrap=name == "entry")
    for hit in hits:
        table.add_row(f"{hit.run}:{hit.line}", hit.kind, _what(hit), show.text(hit.outcome))
    show.out().print(table if hits else Text(f"no entries in {journal.folder}"))


def _index_path(journal: Journal) -> str:
    """In the journal's folder where that exists; nowhere where there is no journal."""
    return str(journal.folder / "index.sqlite") if journal.folder.is_dir() else ":memory:"


def _what(hit: Hit) -> Text:
    problem = f"{hit.format} n={hit.n} k={hit.k}" + (f" m={hit.m}" if hit.m else "") if hit.format else ""
    return show.text(" ".join(part for part in (problem, show.tile(hit.tile) if hit.tile else "") if part))


@app.command("show")
def show_entry(
    entry: Annotated[str, typer.Argument(metavar="RUN[:LINE]", help="A run's name, or one of its lines.")],
    json: options.Json = False,
    state: options.State = None,
) -> None:
    """Print one entry, or every entry of a run, as JSON."""
    journal = Journal(options.places(state, None).state / "journal")
    name, _, number = entry.partition(":")
    files = [file for file in journal.files() if file.stem.startswith(name)]
    if len(files) != 1 or not name:
        found = "no run" if not files else f"{len(files)} runs"
        raise UnusableInput(f"{found} named {name!r} in {journal.folder}; warptile journal list shows them")
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
