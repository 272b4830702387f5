"""Prices corrected by measurements: what they learn, what they never do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from tests.fakes_loop import LIMITS
from warptile.contracts import Price, Problem, Tile
from warptile.search import Aim, Correction, Observation, Point, Points, chosen, improvement

P = Problem("Q4_K", 4096, 4096, 64)
SIDES = [2**i for i in range(3, 8)]


@dataclass(frozen=True)
class One(Tile):
    kernel: ClassVar[str] = "fake.one"
    side: int
    stages: int
    access: str = "direct"


@dataclass(frozen=True)
class Two(One):
    kernel: ClassVar[str] = "fake.two"


def point(tile: One, problem: Problem = P) -> Point:
    seconds = problem.flops / 1e12 / tile.side**0.5
    return Point(tile.kernel, tile, problem, Price(tile.side, 32, 0, 128, "unknown", 1, 1.0, 64, 1.0, seconds))


def seconds(at: Point) -> float:
    """Kernel one: its price, times 1.5 with 4 stages, times 0.5 with "shuffle". Kernel two: 8 times that."""
    tile = at.tile
    assert isinstance(tile, One)
    factor = 8.0 if tile.kernel == "fake.two" else 1.0
    return factor * at.price.seconds * (1.5 if tile.stages == 4 else 1.0) * (0.5 if tile.access == "shuffle" else 1.0)


def everything(problem: Problem = P) -> list[Point]:
    return [
        point(kind(side, stages, access), problem)
        for kind in (One, Two)
        for side in SIDES
        for stages in (2, 3, 4)
        for access in ("direct", "shuffle")
    ]


def observed(points: list[Point], sitting: str = "earlier", doubt: float = 0.0) -> list[Observation]:
    return [Observation(p, seconds(p), sitting, doubt) for p in points]


def error(correction: Correction, points: list[Point]) -> float:
    """Standard deviation of what is left of log seconds; a factor common to all does not count."""
    estimate = correction.of(Points(points, LIMITS))
    return float(np.std(estimate.log_seconds - np.log([seconds(p) for p in points])))


def test_with_nothing_measured_the_order_is_the_prices() -> None:
    points = everything()
    estimate = Correction([], LIMITS).of(Points(points, LIMITS))
    assert np.allclose(np.exp(estimate.log_seconds), [p.price.seconds for p in points])
    assert np.ptp(estimate.deviation) == 0


def test_it_learns_kernels_fields_and_words_from_a_few_tiles_and_carries_them_to_another_problem() -> None:
    """Twenty tiles of sixty, on one problem: on another the spread of log(seconds / price), 1.1, falls below 0.45."""
    seen = [everything()[i] for i in np.random.default_rng(3).permutation(60)[:20]]
    other = everything(Problem("Q4_K", 14336, 4096, 64))
    assert error(Correction([], LIMITS), other) > 1.0
    assert error(Correction(observed(seen), LIMITS), other) < 0.45


def test_a_doubted_measurement_gives_way_to_a_trusted_one() -> None:
    tile = point(One(8, 2))
    wrong = Observation(tile, 4 * tile.price.seconds, "old driver", doubt=0.3)
    right = Observation(tile, tile.price.seconds, "today")
    both = Correction([wrong, right], LIMITS).of(Points([tile], LIMITS), "today")
    assert abs(both.log_seconds[0] - np.log(tile.price.seconds)) < 0.15


def test_what_is_not_measured_stays_uncertain() -> None:
    near, far = point(One(8, 2)), point(Two(8, 2))
    deviation = Correction(observed([near]), LIMITS).of(Points([near, far], LIMITS), "earlier").deviation
    assert deviation[0] < 0.15  # a measurement's noise is 0.12
    assert deviation[1] > 1.0


def test_improvement_is_the_expected_saving() -> None:
    """Against the mean of a million draws, whose error is sd / 1000."""
    draws = np.exp(np.random.default_rng(0).normal(np.log(2.0), 0.5, 1_000_000))
    drawn = np.maximum(1.8 - draws, 0)
    found = improvement(np.array([np.log(2.0)]), np.array([0.5]), 1.8)[0]
    assert found == pytest.approx(drawn.mean(), abs=4 * drawn.std() / 1000)
    assert improvement(np.array([0.0]), np.array([1e-3]), 0.9)[0] == pytest.approx(0.0, abs=1e-9)


def search(history: list[Observation], batch: int = 3) -> int:
    """Tiles measured until the fastest is among them."""
    points, sizes = everything(), 0
    fastest, taken = min(points, key=seconds), list[Point]()
    while fastest not in taken:
        left = [p for p in points if p not in taken]
        estimate = Correction([*history, *observed(taken, "now")], LIMITS).of(Points(left, LIMITS), "now")
        best = min(map(seconds, taken), default=None)
        picked = chosen([Aim(1, estimate, np.arange(len(left)), best)], [p.tile.text() for p in left], batch)
        assert len(set(picked)) == len(picked) == min(batch, len(left))
        taken += [left[i] for i in picked]
        sizes += len(picked)
    return sizes


def test_a_device_with_history_needs_fewer_measurements() -> None:
    history = observed([everything(Problem("Q4_K", 1024, 4096, 64))[i] for i in range(0, 60, 4)])
    without, with_history = search([]), search(history)
    assert with_history <= 3 < without <= 24


def test_the_first_batch_meets_every_kernel() -> None:
    """Between kernels a price says least: both are looked at before a second look at either's neighbours."""
    points = everything()
    estimate = Correction([], LIMITS).of(Points(points, LIMITS))
    picked = chosen([Aim(1, estimate, np.arange(len(points)), None)], [p.tile.text() for p in points], 4)
    assert {points[i].kernel for i in picked} == {"fake.one", "fake.two"}


def test_two_calls_say_the_same() -> None:
    seen = observed(everything()[::5])
    first, second = (Correction(seen, LIMITS).of(Points(everything(), LIMITS)) for _ in range(2))
    assert np.array_equal(first.log_seconds, second.log_seconds)
    assert np.array_equal(first.deviation, second.deviation)


def test_terms_say_why() -> None:
    correction = Correction(observed(everything()), LIMITS)
    slow, fast = (correction.terms(point(Two(32, 4, access))) for access in ("direct", "shuffle"))
    assert slow["kernel"] > 0.5
    assert slow["access"] > fast["access"] + 0.05
    total = correction.of(Points([point(Two(32, 4))], LIMITS)).log_seconds[0] - np.log(point(Two(32, 4)).price.seconds)
    assert sum(slow.values()) == pytest.approx(total, abs=1e-3)
