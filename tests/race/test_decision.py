"""Decisions and their one-line reasons."""

from __future__ import annotations

import dataclasses

import pytest

from tests.race.arms import arm
from warptile.contracts import Race
from warptile.race import decide
from warptile.race.statistics import UNBOUNDED

BASE = Race(arm(0), arm(1), 1.18, 1.15, 1.21, 0.95, 0.02, 0.010, 0.0085, 40, 5, 9000, 4000)


def race(low: float, high: float, **more: object) -> Race:
    return dataclasses.replace(BASE, ratio=(low + high) / 2, low=low, high=high, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "again", "outcome", "why"),
    [
        (race(1.15, 1.21), race(1.10, 1.20), "accept", "fresh buffers"),
        (race(1.15, 1.21), None, "undecided", "not confirmed"),
        (race(1.15, 1.21), race(0.99, 1.20), "undecided", "not confirmed"),
        (race(1.15, 1.21), race(0.90, 0.97), "reject", "not faster there"),
        (race(1.15, 1.21), race(1.10, 1.20, rounds=5), "undecided", "fewer than 8 rounds"),
        (race(1.01, 1.21), race(1.10, 1.20), "undecided", "A/A floor"),
        (race(0.99, 1.21), race(1.10, 1.20), "undecided", "holds 1"),
        (race(0.80, 0.97), None, "reject", "not faster"),
        (race(1.15, 1.21, rounds=7), race(1.10, 1.20), "undecided", "fewer than 8 rounds"),
        (race(1.15, 1.21, floor=0.3), race(1.10, 1.20), "undecided", "A/A floor 1.300"),
    ],
)
def test_decisions(first: Race, again: Race | None, outcome: str, why: str) -> None:
    told = decide(first, again)
    assert told.outcome == outcome
    assert why in told.reason
    assert "\n" not in told.reason
    assert f"[{first.low:.3f}, {first.high:.3f}]" in told.reason


def test_too_few_rounds_are_not_written_as_an_interval_of_a_billion() -> None:
    few = dataclasses.replace(BASE, ratio=27.9, low=1 / UNBOUNDED, high=UNBOUNDED, floor=UNBOUNDED - 1, rounds=4)
    assert decide(few).reason == "27.900x, without an interval, in 4 rounds: fewer than 8 rounds fit the time"
