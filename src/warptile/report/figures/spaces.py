"""The space that was searched: occupancy and spills against time."""

from __future__ import annotations

from warptile import words
from warptile.record import DeviceRecord, MatmulRecord, Tried
from warptile.report import style
from warptile.report.pictures import Picture, drawn

PANELS = 6
FEWEST = 4
TEXT = (
    "Each mark is a timed tile: how many threads a unit holds at once (on paper) and its time. Squares: the driver's"
    " compiler spilled registers; circles: it did not, or does not say. The star stands. Only the largest"
    " matmuls are drawn."
)


def picture(device: DeviceRecord) -> Picture | None:
    """Seconds over resident threads of the largest matmuls with enough timed tiles; None where there are none."""
    worth = [m for m in device.matmuls if len(_timed(m)) >= FEWEST]
    shown = sorted(worth, key=lambda m: -(m.seconds or 0.0))[:PANELS]
    if not shown:
        return None
    figure, all_axes = style.stacked([2.1] * len(shown))
    rows = []
    for axes, matmul in zip(all_axes, shown, strict=True):
        tiles = _timed(matmul)
        for spilled, colour, marker in ((False, style.BLUE, "o"), (True, style.RED, "s")):
            mine = [t for t in tiles if bool(t.spills) is spilled and t.tile != matmul.champion]
            axes.plot(
                [_threads(t) for t in mine],
                [(t.seconds or 0.0) * 1e3 for t in mine],
                marker=marker,
                color=colour,
                linestyle="",
                alpha=0.7,
                label="spills" if spilled else "no spill known",
            )
        for t in tiles:
            if t.tile == matmul.champion:
                axes.plot(
                    [_threads(t)], [(t.seconds or 0.0) * 1e3], marker="*", color=style.INK, markersize=11, linestyle=""
                )
        axes.set(yscale="log", ylabel="ms")
        style.log_ticks(axes.yaxis, most=6)
        axes.set_title(f"{words.matmul(matmul.problem)} M={matmul.problem.m}, {len(tiles)} tiles")
        rows += [
            (
                words.matmul(matmul.problem),
                str(matmul.problem.m),
                words.tile(t.tile),
                str(_threads(t)),
                t.price.limited_by if t.price else "-",
                {None: "not known", True: "yes", False: "no"}[t.spills],
                words.duration(t.seconds),
            )
            for t in tiles
        ]
    handles, labels = all_axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3)
    all_axes[-1].set_xlabel("threads resident a unit, on paper")
    header = ("matmul", "M", "tile", "threads", "limited by", "spills", "time")
    return drawn("space", "Occupancy, spills and time", TEXT, figure, header, rows)


def _timed(matmul: MatmulRecord) -> list[Tried]:
    return [t for t in matmul.tried if t.seconds is not None and t.price is not None]


def _threads(tried: Tried) -> int:
    return 0 if tried.price is None else tried.price.resident_threads
