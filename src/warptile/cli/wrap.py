"""Long texts that must stay readable where they do not fit: broken after a comma or a space, never cut."""

from __future__ import annotations

import re

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style, StyleType


class Pieces:
    """A text that breaks after commas and spaces only; a piece wider than the space there is folds."""

    def __init__(self, text: str, style: StyleType = "") -> None:
        self._text, self._style = text, style

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        longest = max((len(piece.rstrip()) for piece in _pieces(self._text)), default=0)
        return Measurement(longest, len(self._text)).clamp(None, options.max_width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        style = console.get_style(self._style, default=Style.null())
        for line in wrapped(self._text, options.max_width):
            yield Segment(line, style)
            yield Segment.line()


def wrapped(text: str, width: int) -> list[str]:
    """`text` as lines of at most `width` characters, broken after commas and spaces where any fits."""
    lines = [""]
    for piece in _pieces(text):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines[-1] = lines[-1].rstrip()
            lines.append("")
        lines[-1] += piece
        while len(lines[-1].rstrip()) > width:
            lines.append(lines[-1][width:])
            lines[-2] = lines[-2][:width]
    return [line.rstrip() for line in lines]


def _pieces(text: str) -> list[str]:
    return re.findall(r"[^, ]*[, ]+|[^, ]+", text)
