"""`warptile tune --fleet`: one display for all cards, one table of what each kind of device now serves."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from warptile.cli import show
from warptile.cli.tune_view import grid
from warptile.fleet.fleet import FleetEvent, FleetResult

_ADDRESS = re.compile(r"auto|local|[A-Za-z0-9.-]+:\d+|\[[0-9A-Fa-f:]+\]:\d+")


def with_address(words: Sequence[str]) -> list[str]:
    """The words of a command line with a bare `--fleet` written as `--fleet=local`: its address may be left out."""
    found = list(words)
    for i, word in enumerate(found):
        if word == "--fleet" and not (i + 1 < len(found) and _ADDRESS.fullmatch(found[i + 1])):
            found[i] = "--fleet=local"
    return found


class FleetDisplay:
    """Shows a fleet's events on `console` while it is entered: counts, what each card does, news as lines above."""

    def __init__(self, console: Console, address: str) -> None:
        self._console, self._title = console, f"warptile fleet ({address})"
        self._event: FleetEvent | None = None
        self._said = 0.0
        self._live = Live(self, console=console, refresh_per_second=4, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, event: FleetEvent) -> None:
        """Take the next event; where there is no terminal, news and a count every ten seconds."""
        self._event = event
        if event.line:
            self._console.print(show.line(event.line, "yellow"), soft_wrap=True)
        elif self._live is None and time.monotonic() - self._said > 10.0:
            self._said = time.monotonic()
            self._console.print(show.line(_counts(event)), soft_wrap=True)

    def __rich__(self) -> Group:
        head = show.text(self._title, "bold")
        if self._event is None:
            return Group(head, Text("asking the nodes", style="dim"))
        table = Table(box=None, padding=(0, 2), show_header=False)
        most = max(1, self._console.size.height - 6)
        for card, doing in self._event.running[:most]:
            table.add_row(show.line(card), show.line(doing, "dim"))
        more = len(self._event.running) - most
        if more > 0:
            table.add_row(Text(f"and {more} cards more", style="dim"))
        return Group(head, Text(_counts(self._event)), table)


def _counts(event: FleetEvent) -> str:
    lost = f", {event.lost} lost" if event.lost else ""
    return f"{event.done} done{lost}, {len(event.running)} running, {event.waiting} waiting"


def print_result(console: Console, result: FleetResult) -> None:
    """One row a matmul and kind: what is served, the joint ratio, how many cards; then what was lost, who disagreed."""
    for kind in sorted({row.kind for row in result.rows}):
        console.print()
        console.print(show.line(kind, "bold"))
        table = grid()
        table.add_column("matmul")
        table.add_column("served")
        table.add_column("joint ratio, interval", no_wrap=True)
        table.add_column("cards", justify="right")
        table.add_column("decision")
        for row in (r for r in result.rows if r.kind == kind):
            told = row.agreement
            ratio = f"{told.ratio:.3f}x [{told.low:.3f}, {told.high:.3f}]"
            style = {"accept": "green", "disagree": "bold red"}.get(told.outcome, "")
            table.add_row(
                show.text(row.problem.text()), show.wrapping(show.tile(row.point.tile)), ratio, str(told.cards),
                Text(told.outcome if row.point.tile != row.point.stock else f"{told.outcome}: stock", style=style),
            )  # fmt: skip
        console.print(table)
    for card, times in result.odd:
        console.print(
            show.line(f"{card} disagreed with its kind in {times} matmuls: look at its clocks", "bold yellow")
        )
    for key, reason in result.lost:
        console.print(show.line(f"lost: {key}: {reason}", "red"), soft_wrap=True)
    if result.recalled:
        console.print(show.line(f"{result.recalled} items taken from earlier runs", "dim"))
    for path in result.tables:
        console.print(show.line(f"table: {show.path(path)}", "dim"), soft_wrap=True)
    console.print(show.line(f"journal: {show.path(result.journal)}", "dim"), soft_wrap=True)
