"""The statistics under simulated noise: no false winners, real ones found, outliers and drift survived."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.race.arms import BENCH, arm
from warptile.race.decision import decide
from warptile.race.racing import result
from warptile.race.statistics import (
    FEWEST_ROUNDS,
    UNBOUNDED,
    Interval,
    confidence_of_look,
    levels,
    log_ratios,
    looks,
    median_interval,
    noise_floor,
    stable,
    survivors,
)

ROUNDS = 40
Noise = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def quiet(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """3 % log-normal, each arm and round by itself. shape: (rounds, arms)."""
    return np.exp(rng.normal(0, 0.03, shape))


def heavy(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """As `quiet`, and one sample in ten hit by an interruption of Pareto length."""
    return quiet(rng, shape) * (1 + (rng.random(shape) < 0.1) * rng.pareto(1.2, shape))


def drifting(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """As `quiet`, on a clock that halves over the race, wanders, and jumps between two speeds from round to round."""
    rounds = shape[0]
    clock = np.linspace(0, np.log(2), rounds) + np.cumsum(rng.normal(0, 0.05, rounds)) + rng.choice([0, 0.3], rounds)
    return quiet(rng, shape) * np.exp(clock)[:, None]


def tuned(rng: np.random.Generator, noise: Noise, arms: int, gain: float) -> str:
    """One simulated tune: screen `arms` arms (the first is faster by `gain`), race the best, confirm; the outcome."""
    true = np.ones(arms)
    true[0] = 1 / gain
    screened = np.median(true * noise(rng, (3, arms)), axis=0)
    pick = int(np.argmin(screened))
    races = []
    for _ in range(2):
        seconds = noise(rng, (ROUNDS, 3)) * np.array([1, 1, true[pick]])
        races.append(result(BENCH, arm(0), arm(1), seconds[:, 0], seconds[:, 1], seconds[:, 2]))
    return decide(races[0], races[1]).outcome


@pytest.mark.parametrize("noise", [quiet, heavy, drifting])
def test_equal_arms_are_hardly_ever_accepted(noise: Noise) -> None:
    """64 equal arms a tune; at most 1 % of tunes may accept one."""
    rng = np.random.default_rng(11)
    outcomes = [tuned(rng, noise, 64, 1.0) for _ in range(200)]
    assert outcomes.count("accept") <= 2


@pytest.mark.parametrize("noise", [quiet, heavy, drifting])
def test_a_gain_of_a_tenth_is_found(noise: Noise) -> None:
    rng = np.random.default_rng(12)
    assert [tuned(rng, noise, 1, 1.10) for _ in range(100)].count("accept") >= 95


@pytest.mark.parametrize(("noise", "often"), [(quiet, 75), (heavy, 50), (drifting, 75)])
def test_a_gain_of_a_twentieth_is_mostly_found(noise: Noise, often: int) -> None:
    """What is missed is undecided, never rejected."""
    rng = np.random.default_rng(13)
    outcomes = [tuned(rng, noise, 1, 1.05) for _ in range(100)]
    assert outcomes.count("accept") >= often
    assert outcomes.count("reject") == 0


@pytest.mark.parametrize("noise", [quiet, heavy, drifting])
def test_a_loss_is_never_accepted_and_mostly_rejected(noise: Noise) -> None:
    rng = np.random.default_rng(14)
    outcomes = [tuned(rng, noise, 1, 1 / 1.05) for _ in range(100)]
    assert "accept" not in outcomes
    assert outcomes.count("reject") >= 90


def test_the_interval_covers_the_true_ratio_about_as_often_as_it_says() -> None:
    """Order statistics 14 and 27 of 40 miss with probability 2 P(B < 14) = 0.038: 152 +- 12 of 4,000."""
    rng = np.random.default_rng(15)
    covered = 0
    for _ in range(4000):
        interval = median_interval(rng.laplace(np.log(1.07), 0.05, 40))
        covered += interval.low <= 1.07 <= interval.high
    assert abs(4000 - covered - 152) < 4 * 12


def test_an_outlier_moves_the_ratio_by_less_than_the_noise() -> None:
    logs = np.random.default_rng(16).normal(np.log(1.2), 0.02, 40)
    spoiled = logs.copy()
    spoiled[:4] = -5.0
    assert abs(median_interval(logs).middle / median_interval(spoiled).middle - 1) < 0.01


def test_drift_common_to_both_cancels_to_the_bit_of_the_ratio() -> None:
    clock = np.linspace(1, 3, 30)
    interval = median_interval(log_ratios(clock * 1.5, clock))
    assert interval.middle == pytest.approx(1.5, rel=1e-12)
    assert interval.high - interval.low < 1e-12


def test_too_few_rounds_decide_nothing() -> None:
    logs = np.full(FEWEST_ROUNDS - 1, 0.5)
    interval = median_interval(logs)
    assert (interval.low, interval.high) == (1 / UNBOUNDED, UNBOUNDED)
    assert noise_floor(np.ones(3), np.ones(3)) == UNBOUNDED - 1
    assert median_interval(np.array([])).middle == 1.0


def test_no_confidence_is_claimed_that_the_rounds_cannot_give() -> None:
    """The least and the greatest of 12 cover with 1 - 2^-11; a look that asks for more decides nothing."""
    logs = np.linspace(0.1, 0.2, 12)
    assert median_interval(logs, 1 - 2**-11).low == pytest.approx(np.exp(0.1))
    assert median_interval(logs, 1 - 2**-12) == Interval(pytest.approx(np.exp(0.15)), 1 / UNBOUNDED, UNBOUNDED)


def test_looks_double_and_share_the_error() -> None:
    assert looks(12, 12) == (12,)
    assert looks(40, 40) == (40,)
    assert looks(12, 100) == (12, 24, 48, 96, 100)
    assert confidence_of_look(5) == pytest.approx(0.99)


@pytest.mark.parametrize("noise", [heavy, drifting])
def test_looking_often_is_no_way_to_win(noise: Noise) -> None:
    """Equal arms, looked at after 12, 24, .. 768 rounds: one of the looks excludes 1 in at most 5 % of races, here at
    most 4 standard deviations more of 400."""
    rng = np.random.default_rng(18)
    schedule = looks(12, 768)
    level = confidence_of_look(len(schedule))
    wrong = 0
    for _ in range(400):
        seconds = noise(rng, (768, 2))
        logs = log_ratios(seconds[:, 0], seconds[:, 1])
        found = [median_interval(logs[:n], level) for n in schedule]
        wrong += any(i.low > 1 or i.high < 1 for i in found)
    assert wrong <= 20 + 4 * 4.4


def test_a_level_is_what_an_arm_takes_beside_the_others() -> None:
    clock = np.exp(np.random.default_rng(19).normal(0, 1, 50))
    samples = np.array([1.0, 1.02, 1.5])[:, None] * clock
    assert levels(samples) == pytest.approx(np.log([1 / 1.02, 1, 1.5 / 1.02]))


def test_stable_waits_for_two_windows_that_agree() -> None:
    assert not stable([1, 1, 1, 1, 1])
    assert stable([1, 1, 1, 1, 1, 1.02])
    assert not stable([3, 2.5, 2, 1.5, 1.2, 1.0])
    assert stable([9, 8, 1, 1.01, 9, 1, 1.02, 1])


def test_survivors_halve_keep_and_drop_the_hopeless() -> None:
    samples = np.array([[4.0], [1.0], [1.1], [1.2], [9.0], [1.3], [1.24], [1.22]])
    assert survivors(samples, keep=2) == [1, 2, 3, 7]
    assert survivors(samples[:4], keep=4) == [1, 2, 3]
    assert survivors(np.array([[2.0], [1.0]]), keep=4) == [1]
