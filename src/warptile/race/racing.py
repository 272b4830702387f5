"""The race: challengers against the incumbent, interleaved, paired a round, beside an A/A arm of the incumbent."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from warptile import kernels
from warptile.contracts import Arm, Race, Runtime
from warptile.race.bench import Bench, Contender, Resolve, Timer, prepare
from warptile.race.statistics import CONFIDENCE, log_ratios, median_interval, noise_floor, stable

WARM_UP_SHARE = 0.2
SHORTEST_SAMPLE_S = 2e-3
MOST_REPEATS = 16
LOOK_EVERY = 12


def race(
    runtime: Runtime,
    incumbent: Arm,
    challengers: Sequence[Arm],
    *,
    bench: Bench,
    seed: int,
    budget_seconds: float,
    expected: Mapping[str, int] | None = None,
    rounds: int = 40,
    confidence: float = CONFIDENCE,
    resolve: Resolve = kernels.parse_tile,
    clock: Callable[[], float] = time.monotonic,
) -> list[Race]:
    """Race each challenger against the incumbent; one `Race` a challenger, in the order given.

    Everything is compiled before anything is timed. A round times the incumbent, the incumbent again (the A/A arm) and
    every challenger still in the race, in random order in one submission, on rotating weight copies; where a run is
    shorter than 2 ms a sample is the mean of several runs (16 at most). Warm-up rounds are thrown away until the median
    of the last three round totals is within 3 % of that of the three before, or a fifth of the budget is spent. Then
    `rounds` rounds, a number fixed beforehand, so no interval is chosen by looking at it; a challenger whose interval
    lies below 1 at every twelfth round is timed no further (it can only be rejected).

    A race ends after the round in which `budget_seconds` pass; with fewer than 8 rounds its interval decides nothing.
    Every sample is taken here, after the challengers were chosen: samples of the screening that chose them are not
    used, for the best of many noisy arms looks better than it is.

    expected: ids of the proved binaries by tile text. Raises Wrong where the device ran something else.
    """
    rng = np.random.default_rng(seed)
    first = prepare(runtime, bench, incumbent, expected, resolve)
    others = [prepare(runtime, bench, arm, expected, resolve) for arm in challengers]
    # What compiling takes (a driver may compile anew in each process) must not leave no time to measure.
    end = clock() + budget_seconds
    contenders = [first, first, *others]
    timer = Timer(runtime, bench)
    repeats = _warm_up(timer, contenders, rng, clock, clock() + WARM_UP_SHARE * (end - clock()))
    samples: list[list[float]] = [[] for _ in contenders]
    live = list(range(len(contenders)))
    for done in range(1, rounds + 1):
        if clock() >= end or len(live) <= 2:
            break
        for index, seconds in _round(timer, contenders, live, repeats, rng).items():
            samples[index].append(seconds)
        if done % LOOK_EVERY == 0:
            live = [i for i in live if i < 2 or not _slower(samples[0], samples[i], seed, confidence)]
    floor = noise_floor(samples[0], samples[1], seed, confidence)
    return [
        result(bench, incumbent, arm, samples[0], mine, floor, seed, confidence)
        for arm, mine in zip(challengers, samples[2:], strict=True)
    ]


def _warm_up(
    timer: Timer,
    contenders: Sequence[Contender],
    rng: np.random.Generator,
    clock: Callable[[], float],
    end: float,
) -> list[int]:
    """Rounds until stable or `end`; returns how many runs one sample of each contender should hold."""
    repeats = [1] * len(contenders)
    live = list(range(len(contenders)))
    totals: list[float] = []
    latest: dict[int, float] = {}
    while not latest or (clock() < end and not stable(totals)):
        latest = _round(timer, contenders, live, repeats, rng)
        totals.append(sum(latest.values()))
    return [min(MOST_REPEATS, max(1, round(SHORTEST_SAMPLE_S / latest[i]))) for i in live]


def _round(
    timer: Timer, contenders: Sequence[Contender], live: Sequence[int], repeats: Sequence[int], rng: np.random.Generator
) -> dict[int, float]:
    order = [live[i] for i in rng.permutation(len(live))]
    seconds = timer.sample([contenders[i] for i in order], [repeats[i] for i in order])
    return dict(zip(order, seconds, strict=True))


def _slower(incumbent: Sequence[float], challenger: Sequence[float], seed: int, confidence: float) -> bool:
    return median_interval(log_ratios(incumbent, challenger), seed, confidence).high < 1


def result(
    bench: Bench,
    incumbent: Arm,
    challenger: Arm,
    incumbent_samples: Sequence[float],
    challenger_samples: Sequence[float],
    floor: float,
    seed: int,
    confidence: float,
) -> Race:
    """The race of one challenger from its samples, seconds f64[rounds], beside the incumbent's of the same rounds."""
    paired = [float(s) for s in incumbent_samples[: len(challenger_samples)]]
    interval = median_interval(log_ratios(paired, challenger_samples), seed, confidence)
    return Race(
        incumbent=incumbent,
        challenger=challenger,
        ratio=interval.middle,
        low=interval.low,
        high=interval.high,
        confidence=confidence,
        floor=floor,
        incumbent_seconds=float(np.median(paired)) if paired else 0.0,
        challenger_seconds=float(np.median(challenger_samples)) if len(challenger_samples) else 0.0,
        rounds=len(challenger_samples),
        copies=len(bench.copies),
        rotated_bytes=bench.rotated_bytes,
        cache_bytes=bench.cache_bytes,
        incumbent_samples=tuple(paired),
        challenger_samples=tuple(float(s) for s in challenger_samples),
    )
