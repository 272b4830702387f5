"""Where the time of one pass goes by matmul, before and after."""

from __future__ import annotations

from dataclasses import replace

from warptile import words
from warptile.contracts import Problem
from warptile.record import DeviceRecord, MatmulRecord
from warptile.report import style
from warptile.report.pictures import Picture, drawn

PANELS = 4
TEXT = (
    "Seconds of all quantized matmuls of one pass, the stock tile (upper, pale) and the chosen tile (lower, full), by"
    " matmul and how often a pass asks for it."
)


def picture(device: DeviceRecord) -> Picture | None:
    """Stock and chosen seconds, times count, of each matmul of the last workload at each m; None without a workload."""
    known = {_untyped(m.problem): m for m in device.matmuls if m.seconds and m.stock_seconds}
    panels: list[tuple[str, int, list[tuple[MatmulRecord, int]]]] = []
    for workload in device.workloads[-1:]:
        for m in sorted({record.problem.m for record in known.values()}):
            wanted = ((known.get(_untyped(problem)), problem.count) for problem in workload.problems(m))
            mine = [(record, count) for record, count in wanted if record is not None]
            if mine:
                panels.append((workload.name, m, mine))
    if not panels:
        return None
    for _, _, mine in panels:
        mine.sort(key=lambda each: -(each[0].seconds or 0.0) * each[1])
    step = max(1, -(-(len(panels) - 1) // (PANELS - 1)))
    shown = panels if len(panels) <= PANELS else [*panels[:-1:step], panels[-1]]
    figure, all_axes = style.stacked([0.75 + 0.36 * len(mine) for _, _, mine in shown])
    for axes, (name, m, mine) in zip(all_axes, shown, strict=True):
        before, after = _milliseconds(mine)
        places = range(len(mine))
        axes.barh([p - 0.2 for p in places], before, height=0.38, color="white", edgecolor=style.BLUE, hatch="////")
        axes.barh([p + 0.2 for p in places], after, height=0.38, color=style.BLUE)
        axes.set_yticks(list(places), [f"{words.matmul(r.problem)} ({count}x)" for r, count in mine], fontsize=7)
        axes.set(ylim=(len(mine) - 0.4, -0.6), xlabel="ms a pass")
        axes.grid(axis="y", visible=False)
        axes.set_title(f"{name}, M = {m}: {sum(before):.3g} to {sum(after):.3g} ms")
    rows = [
        (words.matmul(r.problem), str(m), str(count), f"{b:.3g} ms", f"{a:.3g} ms", words.tile(r.champion))
        for _, m, mine in panels
        for (r, count), b, a in zip(mine, *_milliseconds(mine), strict=True)
    ]
    header = ("matmul", "M", "times a pass", "stock", "chosen", "tile")
    return drawn("matmuls", "Time of one pass by matmul", TEXT, figure, header, rows)


def _milliseconds(mine: list[tuple[MatmulRecord, int]]) -> tuple[list[float], list[float]]:
    """Of one pass, with the stock and with the chosen tiles."""
    before = [(r.stock_seconds or 0.0) * count * 1e3 for r, count in mine]
    return before, [(r.seconds or 0.0) * count * 1e3 for r, count in mine]


def _untyped(problem: Problem) -> Problem:
    """The problem without its count and its types of x and y, which a workload leaves open."""
    return replace(problem, count=1, x_dtype="", y_dtype="")
