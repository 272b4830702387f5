"""What the price foretold against what was measured."""

from __future__ import annotations

from collections import defaultdict
from math import isfinite

import numpy as np

from warptile.record import DeviceRecord
from warptile.report import style
from warptile.report.pictures import Picture, drawn
from warptile.search.accuracy import rank_correlation

FEWEST = 4
TEXT = (
    "Each mark is a timed tile: its price on paper over the cheapest of its matmul, and its time over the fastest. On"
    " the diagonal the price foretold the loss. Spearman's rank correlation is the median over matmuls with at least"
    f" {FEWEST} timed tiles of the kernel."
)


def picture(device: DeviceRecord) -> Picture | None:
    """Measured over priced slowdown of every timed tile, by kernel; None where no matmul has enough of them."""
    marks: dict[str, list[tuple[float, float]]] = defaultdict(list)
    ranks: dict[str, list[float]] = defaultdict(list)
    first = total = 0
    for matmul in device.matmuls:
        tiles = [t for t in matmul.tried if t.seconds is not None and t.price is not None]
        if len(tiles) < FEWEST:
            continue
        cheapest = min(t.price.seconds for t in tiles if t.price)
        fastest = min(t.seconds for t in tiles if t.seconds)
        by_price = sorted(tiles, key=lambda t: t.price.seconds if t.price else 0.0)
        total += 1
        first += any(t.seconds == fastest for t in by_price[:5])
        groups: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for t in tiles:
            if t.price and t.seconds:
                groups[t.kernel].append((t.price.seconds / cheapest, t.seconds / fastest))
        for kernel, points in groups.items():
            marks[kernel] += points
            if len(points) >= FEWEST and isfinite(rho := rank_correlation(*np.array(points, np.float64).T)):
                ranks[kernel].append(rho)
    if not total:
        return None
    figure, (axes,) = style.stacked([3.8])
    top = 1.0
    rows = []
    for index, kernel in enumerate(sorted(marks)):
        colour, marker = style.CYCLE[index % len(style.CYCLE)]
        xs, ys = zip(*marks[kernel], strict=True)
        top = max(top, *xs, *ys)
        name = kernel.split(".", 1)[-1]
        axes.plot(xs, ys, marker=marker, color=colour, linestyle="", alpha=0.6, label=name)
        middle = sorted(ranks[kernel])
        rank = f"{middle[len(middle) // 2]:.2f}" if middle else "-"
        rows.append((kernel, str(len(xs)), str(len(middle)), rank))
    axes.plot([1, top], [1, top], color=style.GREY, linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="price over the cheapest", ylabel="time over the fastest")
    style.log_ticks(axes.xaxis)
    style.log_ticks(axes.yaxis)
    axes.set_title(f"the fastest was among the 5 cheapest: {first} of {total}")
    axes.legend(loc="lower right", fontsize=7)
    header = ("kernel", "timed tiles", "matmuls ranked", "Spearman, median")
    return drawn("prices", "Price against measurement", TEXT, figure, header, rows)
