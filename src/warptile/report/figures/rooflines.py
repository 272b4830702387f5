"""Every matmul before and after, under the device's measured roof."""

from __future__ import annotations

import numpy as np

from warptile import words
from warptile.record import DeviceRecord
from warptile.report import style
from warptile.report.pictures import Picture, drawn
from warptile.roofline import arithmetic, floor_seconds, intensity

TEXT = (
    "Each line is one matmul: hollow at the stock tile's speed, filled at the chosen tile's. Slanted: the measured read"
    " rate; level: the measured rate of arithmetic, of fp32 (which matrix units may go above) or of the library's dense"
    " fp16 matmul."
)


def picture(device: DeviceRecord) -> Picture:
    """FLOP/s over FLOP a byte moved at least (`roofline.intensity`), both axes logarithmic."""
    figure, (axes,) = style.stacked([4.2])
    raced = [m for m in device.matmuls if m.seconds and m.stock_seconds]
    formats = list(dict.fromkeys(m.problem.format for m in raced))
    reached = []
    for matmul in raced:
        colour, marker = style.CYCLE[formats.index(matmul.problem.format) % len(style.CYCLE)]
        x = intensity(matmul.problem)
        before, after = (matmul.problem.flops / s for s in (matmul.stock_seconds or 1, matmul.seconds or 1))
        reached.append((x, before, after))
        axes.plot([x, x], [before, after], color=colour, linewidth=1, alpha=0.6)
        axes.plot([x], [before], marker=marker, markerfacecolor="white", color=colour, linestyle="")
        axes.plot([x], [after], marker=marker, color=colour, linestyle="")
    top = device.ceilings
    xs = np.array([min(r[0] for r in reached) / 2, max(r[0] for r in reached) * 2])
    if top is not None:
        bend = top.flops_per_s / top.read_bytes_per_s
        xs = np.array([min(xs[0], bend / 2), bend, max(xs[1], bend * 2)])
        axes.plot(xs, np.minimum(xs * top.read_bytes_per_s, top.flops_per_s), color=style.INK, linewidth=1.5)
        axes.annotate(
            f"{words.significant(top.read_bytes_per_s / 1e9)} GB/s, {words.rate(top.flops_per_s)}"
            f" {arithmetic(device.identity.runtime)}",
            (xs[-1], top.flops_per_s),
            xytext=(0, 4),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )
    for index, name in enumerate(formats):
        colour, marker = style.CYCLE[index % len(style.CYCLE)]
        axes.plot([], [], marker=marker, color=colour, linestyle="", label=name)
    axes.set(xscale="log", yscale="log", xlabel="FLOP a byte moved")
    style.log_ticks(axes.xaxis)
    style.log_ticks(axes.yaxis, words.rate)
    axes.legend(loc="lower right", ncols=2)
    rows = []
    for matmul in raced:
        took = matmul.seconds or 1.0
        share = "-" if top is None else f"{floor_seconds(matmul.problem, top) / took:.0%}"
        rows.append(
            (
                words.matmul(matmul.problem),
                str(matmul.problem.m),
                f"{intensity(matmul.problem):.1f}",
                words.rate(matmul.problem.flops / (matmul.stock_seconds or 1.0)),
                words.rate(matmul.problem.flops / took),
                share,
            )
        )
    header = ("matmul", "M", "FLOP/byte", "stock", "chosen", "of the roof")
    return drawn("roofline", "Roofline, before and after", TEXT, figure, header, rows)
