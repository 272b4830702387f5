"""Whole tunes over 64 tiles that are all the same, on devices whose clocks flatter some of them now and then.

Each happened in public: an optimistic outlier of many won, a clock that throttled or jumped picked the winner. The
clock is recorded noise of real devices, resampled, with the fault laid over it. Served would be a tile that is no
faster.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.mutants.planting import Lab, Mutant, Spoken
from tests.support.noise import noises
from tests.support.simulated_tunes import tune_once


def on(noise: str) -> Callable[[Lab, bool], Spoken]:
    """A tune of equal tiles; without the fault one of them truly is 5 % faster, and is served."""

    def run(lab: Lab, planted: bool) -> Spoken:
        known = lab.once("noises", noises)
        told = tune_once(known[noise], 5, 1.0 if planted else 1.05, lab.folder)
        accepted = told.outcome == "accept" and told.tile != 0
        return Spoken("" if accepted else "race", told.result.rows[0].decision.reason)

    return run


MUTANTS = (
    Mutant(12, "the luckiest of 64 equal tiles, 5 % of launches interrupted", "race", "made-up", on("outliers")),
    Mutant(13, "64 equal tiles on a clock that falls and swings", "race", "made-up", on("drift"), "drifting_clock"),
    Mutant(13, "64 equal tiles on two clocks a third apart", "race", "made-up", on("two clocks"), "two_clocks"),
    Mutant(
        0,
        "64 equal tiles on a card whose first launch of a submission takes 40 % more, and whose last take 6 % less",
        "race",
        "made-up",
        on("H200 Vulkan m=1"),
        "ends_of_a_submission",
    ),
)
