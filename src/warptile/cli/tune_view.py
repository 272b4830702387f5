"""The end of a tune as a person reads it: two or three lines a matmul, for 100 columns; narrower, tiles wrap."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from warptile.cli import show
from warptile.race.statistics import UNBOUNDED
from warptile.tuning.result import ModelSum, TuneResult, TuneRow

LINES = box.Box("    \n    \n ── \n    \n    \n    \n    \n    \n")


def grid() -> Table:
    """An empty table in the command line's style."""
    return Table(box=LINES, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="dim")


def print_result(console: Console, result: TuneResult, hints: Sequence[tuple[str, str]]) -> None:
    """Heading, table, sums, notes, where it is kept, what to run next.

    hints: (command line, what it does).
    """
    console.print(_heading(result))
    if result.rows:
        console.print(_table(result))
        console.print()
    for each in result.sums:
        console.print(_sum(each))
    for line in _notes(result):
        console.print(line)
    for line in _kept(result, hints):
        console.print(line, soft_wrap=True)


def _heading(result: TuneResult) -> Text:
    file = Path(result.source).name
    line = show.text(result.name if file in ("", result.name) else f"{file} ({result.name})", "bold")
    line.append("\n").append(show.text(f"on {result.identity.device}, {result.identity.driver}", "not bold"))
    how = f"{result.tried} proofs in {show.span(result.seconds)}, {result.rejected} rejected"
    if result.rechecked:
        how = f"re-checked, not repeated: every winner proved and raced again; {how}"
    elif result.recalled:
        how = f"resumed: {result.recalled} results taken from earlier runs; {how}"
    line.append(f"\n{how}\n", style="dim not bold")
    return line


def _table(result: TuneResult) -> Table:
    table = grid()
    table.add_column("matmul, count, M", no_wrap=True)
    table.add_column("stock tile\nchosen kernel and tile")
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("ratio\ninterval", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    for row in result.rows:
        _add(table, row)
    return table


def _add(table: Table, row: TuneRow) -> None:
    problem, stays = row.problem, row.tile == row.stock
    times = f"{problem.count} x, M = {problem.m}"
    stock = show.tile(row.stock) if row.stock else f"no stock tile: {row.stock_note}"
    table.add_row(
        show.text(show.matmul(problem)),
        show.wrapping(stock, "dim"),
        Text(show.duration(row.stock_seconds), style="dim"),
        Text(f"{row.ratio:.2f}x", style="green") if row.stock and not stays else Text(_stays(row) if stays else ""),
        Text(f"{row.share:.0%}"),
    )
    table.add_row(
        Text(times, style="dim"),
        show.wrapping("" if stays else show.tile(row.tile), "bold"),
        Text("" if stays else show.duration(row.seconds), style="bold"),
        Text("" if stays or not row.stock else show.interval(row.low, row.high), style="green"),
        "",
    )
    if prices := _prices(row):
        table.add_row("", Text(prices, style="dim"), "", "", "")


def _prices(row: TuneRow) -> str:
    """The chosen tile's price on paper, and corrected by what was measured before it; "" where it was not screened."""
    if row.paper_seconds is None or row.expected_seconds is None:
        return ""
    return f"on paper {show.duration(row.paper_seconds)}, corrected {show.duration(row.expected_seconds)}"


def _stays(row: TuneRow) -> str:
    return "undecided" if row.decision.outcome == "undecided" else "stock stays"


def _sum(each: ModelSum) -> Text:
    line = Text(f"all matmuls at M = {each.m}: ")
    if each.stock_tokens_per_s is not None:
        line.append(f"{show.significant(each.stock_tokens_per_s)} tokens/s with stock tiles, ")
    line.append(f"{show.significant(each.tokens_per_s)} tokens/s tuned", style="bold")
    if each.stock_tokens_per_s is not None:
        line.append(f" ({each.tokens_per_s / each.stock_tokens_per_s:.2f}x)")
    if each.missing:
        line.append(f"; {each.missing} matmuls left out", style="yellow")
    return line


def _notes(result: TuneResult) -> list[Text]:
    lines = [
        show.text(f"{name}: {count} tensors, {share:.1%} of the file's tensor bytes, have no kernel", "yellow")
        for name, count, share in result.unsupported
    ]
    lines += [show.line(f"{problem.text()}: {reason}", "yellow") for problem, reason in result.unserved]
    lines += [show.line(note, "yellow") for note in result.notes]
    raced = [row for row in result.rows if row.race is not None]
    floors = [1 + row.floor for row in raced if 1 + row.floor < UNBOUNDED]
    if floors:
        lines.append(Text(f"A/A floor of these races: {min(floors):.3f} to {max(floors):.3f}", style="dim"))
    again = [row.race.ratio for row in raced if row.reuse == "rechecked" and row.race is not None]
    if again:
        lines.append(Text(f"ratios when raced again: {min(again):.2f}x to {max(again):.2f}x", style="dim"))
    return lines


def _kept(result: TuneResult, hints: Sequence[tuple[str, str]]) -> list[Text]:
    lines = [Text(f"table    {show.path(result.table)}"), Text(f"journal  {show.path(result.journal)}")]
    for command, why in hints:
        lines += [Text(f"next     {why}:"), Text(f"  {command}", style="bold")]
    return lines
