"""How the pictures look: a column that fits a phone, colours that the colour-blind tell apart, shapes that repeat them.

Colours: M. Okabe, K. Ito, "Color universal design" (2008).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
INK, GREY = "#222222", "#767676"
CYCLE = ((BLUE, "o"), (RED, "s"), (GREEN, "^"), (PURPLE, "D"), (ORANGE, "v"), (SKY, "P"), (INK, "X"), (GREY, "*"))
"""(colour, marker) of the first, second, ... of several things of one kind."""
WIDTH = 5.2
"""Inches: text of 9 points is then 9 pixels on a phone 390 pixels wide."""

_LOOK: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.markersize": 5,
    "text.parse_math": False,
    "svg.hashsalt": "warptile",
    "figure.facecolor": "white",
}


@contextlib.contextmanager
def look() -> Iterator[None]:
    """Figures made and saved inside look like one report, whatever the user's matplotlib is set to."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_LOOK)
        yield


def stacked(heights: list[float]) -> tuple[Figure, list[Axes]]:
    """A figure of `WIDTH` with panels of these heights, in inches, below each other."""
    figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
    axes = figure.subplots(len(heights), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    return figure, [row[0] for row in axes]


_SERIES = (
    (1.0,),
    (1.0, 3.0),
    (1.0, 2.0, 5.0),
    (1.0, 1.5, 2.0, 3.0, 5.0, 7.0),
    tuple(1 + step / 10 for step in range(90)),
)


def log_ticks(axis: Axis, text: Callable[[float], str] = "{:g}".format, most: int = 7) -> None:
    """A logarithmic axis with the most round ticks, at most `most`, that its view holds, written by `text`."""
    low, high = axis.get_view_interval()
    ticks: list[float] = []
    for series in _SERIES:
        decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
        found = [s * 10.0**decade for decade in decades for s in series if low <= s * 10.0**decade <= high]
        if len(found) > most and ticks:
            break
        ticks = found
    ticks = ticks[:: math.ceil(len(ticks) / most)] if ticks else [low, high]
    axis.set_ticks(ticks, [text(tick) for tick in ticks])
    axis.set_minor_locator(NullLocator())
