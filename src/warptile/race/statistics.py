"""The race's statistics: pure functions on arrays of seconds.

A race pairs a challenger with the incumbent inside a round, so drift of the clock cancels; its statistic is the median
over rounds of log(incumbent seconds / challenger seconds), so an outlier moves it no further than one rank.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
RESAMPLES = 2000
FEWEST_ROUNDS = 8
UNBOUNDED = 1e9


@dataclass(frozen=True)
class Interval:
    """A ratio with a confidence interval: middle and [low, high], all as ratios (1: equal)."""

    middle: float
    low: float
    high: float


def log_ratios(incumbent: ArrayLike, challenger: ArrayLike) -> NDArray[np.float64]:
    """log(incumbent / challenger) a round, f64[rounds]; positive where the challenger is faster."""
    return np.asarray(np.log(np.asarray(incumbent, np.float64)) - np.log(np.asarray(challenger, np.float64)))


def median_interval(
    logs: NDArray[np.float64], seed: int, confidence: float = CONFIDENCE, resamples: int = RESAMPLES
) -> Interval:
    """exp of the median of `logs` with a bootstrap percentile interval (Efron and Tibshirani 1993, chapter 13).

    Rounds are resampled with replacement, so an interval is of the paired statistic. With fewer than
    `FEWEST_ROUNDS` rounds a median has no useful interval (the widest one order statistics can give, from the least to
    the greatest of n, covers 1 - 2^(1-n)): it is then [1 / UNBOUNDED, UNBOUNDED], which decides nothing.
    """
    if logs.size == 0:
        return Interval(1.0, 1 / UNBOUNDED, UNBOUNDED)
    middle = float(np.exp(np.median(logs)))
    if logs.size < FEWEST_ROUNDS:
        return Interval(middle, 1 / UNBOUNDED, UNBOUNDED)
    rng = np.random.default_rng(seed)
    medians = np.median(logs[rng.integers(0, logs.size, (resamples, logs.size))], axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(medians, [tail, 1 - tail])
    return Interval(middle, float(np.exp(low)), float(np.exp(high)))


def noise_floor(first: ArrayLike, second: ArrayLike, seed: int, confidence: float = CONFIDENCE) -> float:
    """The A/A floor: how far from 1 the interval of an arm against itself reaches, max(high, 1 / low) - 1.

    first, second: seconds of the same binary, run as two arms of each round. UNBOUNDED - 1 with too few rounds.
    """
    interval = median_interval(log_ratios(first, second), seed, confidence)
    return max(interval.high, 1 / interval.low) - 1


def stable(totals: ArrayLike, window: int = 3, tolerance: float = 0.03) -> bool:
    """Whether warm-up may end: the medians of the last `window` round totals and of the `window` before differ by
    less than `tolerance`, relative. False with fewer than 2 * window rounds.
    """
    values = np.asarray(totals, np.float64)
    if values.size < 2 * window:
        return False
    last, before = np.median(values[-window:]), np.median(values[-2 * window : -window])
    return bool(abs(last - before) < tolerance * before)


def survivors(samples: NDArray[np.float64], keep: int, slack: float = 1.25) -> list[int]:
    """Which arms of one halving rung go on, fastest first.

    samples: seconds f64[arms, samples]; arms are ranked by their median. The faster half goes on, but never fewer than
    `keep` where there are as many; then any arm slower than `slack` times the fastest is dropped, however few are left.
    """
    medians = np.median(samples, axis=1)
    order = np.argsort(medians, kind="stable")[: max(keep, (len(medians) + 1) // 2)]
    fastest = medians[order[0]]
    return [int(arm) for arm in order if medians[arm] <= slack * fastest]
