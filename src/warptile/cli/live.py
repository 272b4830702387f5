"""The display of a tune at work: what is measured now, best so far, time left. Plain lines where it is no terminal."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from warptile.cli import show
from warptile.tuning.result import Event

STAGES = {
    "prove": "proving",
    "race": "screening",
    "recheck": "re-checking",
    "decide": "racing against stock",
}


class Display:
    """Shows a tune's events on `console` while it is entered."""

    def __init__(self, console: Console, source: str, device: str, budget: float) -> None:
        self._console = console
        self._title = f"warptile tune {Path(source).name} on {device}"
        self._budget = budget
        self._event: Event | None = None
        self._start = time.monotonic()
        self._live = Live(self, console=console, refresh_per_second=4, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, event: Event) -> None:
        """Take the next event."""
        self._event = event
        if self._live is None:
            line = f"[{show.clock(event.spent)}, {show.clock(event.left)} left] {_doing(event)}"
            self._console.print(show.line(line), soft_wrap=True)

    def __rich__(self) -> Group:
        spent = time.monotonic() - self._start
        head = show.text(self._title, "bold")
        if self._event is None:
            return Group(head, Text("opening the device", style="dim"))
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(total=self._budget, completed=min(spent, self._budget), width=40),
            Text(f"{show.clock(max(0.0, self._budget - spent))} left at most, {self._event.tried} tiles proved"),
        )
        doing = show.line(_doing(self._event))
        doing.overflow, doing.no_wrap = "ellipsis", True
        return Group(head, bar, doing, _best(self._event))


def _doing(event: Event) -> str:
    words = event.text.split("  ")
    shown = "  ".join(show.tile(word) if ":" in word else word for word in words)
    return f"{STAGES.get(event.stage, event.stage)}  {shown}"


def _best(event: Event) -> Table:
    table = Table(box=None, padding=(0, 2), header_style="dim")
    table.add_column("best so far")
    table.add_column("stock", justify="right")
    table.add_column("best", justify="right")
    table.add_column("", justify="right")
    for name, (best, stock) in event.best.items():
        gain = f"{stock / best:.2f}x" if stock and best else ""
        table.add_row(Text(name), show.duration(stock or None), show.duration(best), gain)
    return table
