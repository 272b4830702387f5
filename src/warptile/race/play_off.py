"""The play-off: which of several arms that screening could not tell apart is the fastest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import Arm, Runtime
from warptile.race.bench import Timer, prepare
from warptile.race.racing import WARM_UP_SHARE, warm_up
from warptile.race.screening import Field, Screening
from warptile.race.statistics import LEAST_GAIN, log_ratios, median_interval
from warptile.race.terms import Terms

ROUNDS = 12


def play_off(runtime: Runtime, arms: Sequence[Arm], terms: Terms) -> Screening:
    """Sequential halving (Karnin, Koren and Somekh 2013) over rounds that time every arm left, in random order.

    Every rung gets an equal share of the time that is left, and ends sooner where the 95 % intervals of the paired
    ratios to the leader have come within 1 % of their middles; the slower half is out after each, ranked over all
    rounds so far by what an arm took beside the others of the round. It ends when one arm is left, when no other can be
    1 % faster than the leader (a choice that good is good enough; Even-Dar, Mannor and Mansour 2006), or in the round
    in which `terms.budget_seconds` pass. What it picks is flattered by being picked, so it is raced afterwards on new
    samples.
    """
    clock = terms.clock
    rng = np.random.default_rng(terms.seed)
    contenders = [prepare(runtime, terms.bench, arm, terms.expected, terms.resolve) for arm in arms]
    end = clock() + terms.budget_seconds
    timer = Timer(runtime, terms.bench)
    repeats = warm_up(timer, contenders, rng, clock, clock() + WARM_UP_SHARE * (end - clock()))
    field = Field(timer, contenders, range(len(arms)), repeats)
    while len(field.live) > 1 and clock() < end:
        rungs = (len(field.live) - 1).bit_length()
        until = clock() + (end - clock()) / rungs
        widths, most = np.array([np.inf]), np.inf
        while (widths > LEAST_GAIN).any() and most >= 1 + LEAST_GAIN:
            in_time = field.rounds(ROUNDS, rng, clock, until)
            field.rank()
            widths, most = _spread(field)
            if not in_time:
                break
        if most < 1 + LEAST_GAIN:
            break
        field.live = field.live[: (len(field.live) + 1) // 2]
    return field.result(arms, len(field.live), {})


def _spread(field: Field) -> tuple[NDArray[np.float64], float]:
    """Half-widths of the intervals of all other arms' ratios to the leader, and how much faster one may be."""
    leader = field.samples[field.live[0]]
    found = [median_interval(log_ratios(leader, field.samples[i])) for i in field.live[1:]]
    return np.array([np.log(i.high / i.low) / 2 for i in found]), max(i.high for i in found)
