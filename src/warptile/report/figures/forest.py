"""Ratios with their intervals, one line a matmul, over the noise of the machine."""

from __future__ import annotations

from warptile import words
from warptile.race.statistics import UNBOUNDED
from warptile.record import DeviceRecord
from warptile.report import style
from warptile.report.pictures import Picture, drawn

TEXT = (
    "How many times faster than the stock tile the best challenger was, paired in one run, with the 95 % interval."
    " Grey: how far an arm strayed from itself (A/A) in the same race; what lies inside it says nothing. Filled:"
    " accepted. Hollow: the stock tile stays."
)


def picture(device: DeviceRecord) -> Picture:
    """A forest plot: ratio, interval and A/A floor of each matmul's last race."""
    raced = [(m, m.last_race) for m in device.matmuls if m.last_race is not None]
    figure, (axes,) = style.stacked([0.9 + 0.26 * len(raced)])
    rows = []
    for line, (matmul, race) in enumerate(raced):
        assert race is not None
        bounded = race.high < UNBOUNDED
        floor = min(race.floor, 10.0)
        axes.barh(line, width=(1 + floor) - 1 / (1 + floor), left=1 / (1 + floor), height=0.8, color="#DDDDDD")
        colour = style.BLUE if matmul.accepted else style.RED
        if bounded:
            axes.plot([race.low, race.high], [line, line], color=colour, linewidth=1.5)
        axes.plot(
            [race.ratio],
            [line],
            marker="o" if matmul.accepted else "s",
            color=colour,
            markerfacecolor=colour if matmul.accepted else "white",
        )
        rows.append(
            (
                words.matmul(matmul.problem),
                str(matmul.problem.m),
                words.ratio(race.ratio, race.low, race.high),
                words.floor(race.floor),
                str(race.rounds),
                matmul.decided.decision.outcome if matmul.decided is not None else "-",
                words.tile(race.challenger.tile),
            )
        )
    axes.axvline(1.0, color=style.INK, linewidth=1)
    axes.set(xscale="log", xlabel="times faster than stock", ylim=(len(raced) - 0.4, -0.6))
    axes.set_yticks(range(len(raced)), [f"{words.matmul(m.problem)} M={m.problem.m}" for m, _ in raced], fontsize=7)
    style.log_ticks(axes.xaxis)
    axes.grid(axis="y", visible=False)
    header = ("matmul", "M", "ratio", "A/A floor", "rounds", "decision", "challenger")
    return drawn("forest", "Ratios against the noise", TEXT, figure, header, rows)
