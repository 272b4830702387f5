"""The race's statistics: pure functions on arrays of seconds.

A race pairs a challenger with the incumbent inside a round, so drift of the clock cancels; its statistic is the median
over rounds of log(incumbent seconds / challenger seconds), so an outlier moves it no further than one rank.

Why its intervals hold on any machine: the order of the arms in a round is drawn anew for each round. Where the two arms
take the same time, swapping their places in a round is as likely as not, whatever the machine did meanwhile, so the
sign of each round's log ratio is a fair coin, independent of every other round (a randomization test: Fisher 1935,
The Design of Experiments, chapter III). Nothing is asked of the noise: not independence, not a shape, not a steady
clock. A true ratio shifts the logarithms, and the argument holds around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
FEWEST_ROUNDS = 8
UNBOUNDED = 1e9
LEAST_GAIN = 0.01
"""A ratio of 1 + this is the smallest that a race is kept going for."""


@dataclass(frozen=True)
class Interval:
    """A ratio with a confidence interval: middle and [low, high], all as ratios (1: equal)."""

    middle: float
    low: float
    high: float


def log_ratios(incumbent: ArrayLike, challenger: ArrayLike) -> NDArray[np.float64]:
    """log(incumbent / challenger) a round, f64[rounds]; positive where the challenger is faster."""
    return np.asarray(np.log(np.asarray(incumbent, np.float64)) - np.log(np.asarray(challenger, np.float64)))


def median_interval(logs: NDArray[np.float64], confidence: float = CONFIDENCE) -> Interval:
    """exp of the median of `logs` with the interval of order statistics (Thompson 1936; the sign test inverted).

    [x_(j), x_(n + 1 - j)] of n sorted values covers the true median but for P(B < j) on each side, B binomial with n
    tries of 1/2; j is the largest for which both together are at most 1 - confidence. Exact where every value falls
    above the true median as often as below, independently of the others; conservative where values are equal.
    With fewer than `FEWEST_ROUNDS` values, or where not even the least and the greatest cover as often (their
    confidence is 1 - 2^(1 - n)), it is [1 / UNBOUNDED, UNBOUNDED], which decides nothing.
    """
    if logs.size == 0:
        return Interval(1.0, 1 / UNBOUNDED, UNBOUNDED)
    middle = float(np.exp(np.median(logs)))
    rank = _rank(logs.size, confidence) if logs.size >= FEWEST_ROUNDS else 0
    if not rank:
        return Interval(middle, 1 / UNBOUNDED, UNBOUNDED)
    ends = np.partition(logs, [rank - 1, logs.size - rank])
    return Interval(middle, float(np.exp(ends[rank - 1])), float(np.exp(ends[logs.size - rank])))


def _rank(count: int, confidence: float) -> int:
    """The largest j with 2 P(B < j) <= 1 - confidence, B binomial(count, 1/2); 0 where j = 1 is too large."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, count + 1)))])
    tails = np.cumsum(np.exp(logs[-1] - logs - logs[::-1] - count * np.log(2)))[: (count + 1) // 2]
    return int(np.searchsorted(2 * tails, (1 - confidence) * (1 + 1e-9), side="right"))


def looks(first: int, most: int) -> tuple[int, ...]:
    """After how many rounds an open race is looked at: first, 2 first, 4 first, ... and `most`, where it ends."""
    found = [first]
    while 2 * found[-1] < most:
        found.append(2 * found[-1])
    return (*found, most) if most > found[-1] else (min(first, most),)


def confidence_of_look(count: int, confidence: float = CONFIDENCE) -> float:
    """The confidence of each look's interval, so that all `count` of them hold together at `confidence`.

    The error is spent in equal parts (alpha spending, Lan and DeMets 1983; the sum over looks is Bonferroni's bound,
    right however the looks depend on each other). Equal parts suit looks at doubled rounds: the bound on the
    standardized statistic is then the same at each.
    """
    return 1 - (1 - confidence) / max(1, count)


def noise_floor(first: ArrayLike, second: ArrayLike) -> float:
    """The A/A floor: how far from 1 the ratio of an arm to itself came out, max(ratio, 1 / ratio) - 1.

    first, second: seconds of the same binary, run as two arms of each round. UNBOUNDED - 1 with too few rounds.
    """
    logs = log_ratios(first, second)
    return float(np.exp(abs(np.median(logs)))) - 1 if logs.size >= FEWEST_ROUNDS else UNBOUNDED - 1


def settled(interval: Interval, floor: float) -> bool:
    """Whether more rounds would decide nothing else: faster beyond the floor, or no faster by `LEAST_GAIN`."""
    return interval.low > 1 + floor or interval.high < 1 + LEAST_GAIN


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

    samples: seconds f64[arms, rounds]; arms are ranked by their `levels`. The faster half goes on, but never fewer than
    `keep` where there are as many; then any arm slower than `slack` times the fastest is dropped, however few are left.
    """
    level = levels(samples)
    order = np.argsort(level, kind="stable")[: max(keep, (len(level) + 1) // 2)]
    return [int(arm) for arm in order if level[arm] - level[order[0]] <= np.log(slack)]


def levels(samples: Sequence[Sequence[float]] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Each arm's log seconds beside the others': the median over rounds of log(seconds / median of the round).

    What a whole round suffers, such as a slower clock, is in no arm's level (a median polish's step: Tukey 1977).

    samples: seconds [arms][rounds], the same rounds of each arm.
    """
    logs = np.log(np.asarray(samples, np.float64))
    return np.asarray(np.median(logs - np.median(logs, axis=0), axis=1))
