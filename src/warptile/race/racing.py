"""The race: challengers against the incumbent, interleaved, paired a round, beside an A/A arm of the incumbent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from warptile.contracts import Arm, Race, Runtime
from warptile.race.bench import Bench, Contender, Timer, prepare
from warptile.race.outputs import check_unchanged, outputs
from warptile.race.statistics import (
    CONFIDENCE,
    Interval,
    confidence_of_look,
    log_ratios,
    looks,
    median_interval,
    noise_floor,
    settled,
    stable,
)
from warptile.race.terms import Terms

WARM_UP_SHARE = 0.2
SHORTEST_SAMPLE_S = 2e-3
MOST_REPEATS = 16
BLOCK_RUNS = 4
LOOK_EVERY = 12


def race(
    runtime: Runtime,
    incumbent: Arm,
    challengers: Sequence[Arm],
    terms: Terms,
    *,
    rounds: int = 40,
    most_rounds: int = 0,
    confidence: float = CONFIDENCE,
) -> list[Race]:
    """Race each challenger against the incumbent; one `Race` a challenger, in the order given.

    Everything is compiled before anything is timed. A round times the incumbent, the incumbent again (the A/A arm) and
    every challenger still in the race, in random order in one submission, on rotating weight copies; where the
    fastest's run is shorter than 2 ms every sample is the mean of several runs (16 at most). Warm-up rounds are thrown
    away until the median of the last three round totals is within 3 % of that of the three before, or a fifth of the
    budget is spent.

    Then `rounds` rounds, a number fixed beforehand, so no interval is chosen by looking at it; a challenger whose
    interval lies below 1 at every twelfth round is timed no further (it can only be rejected). Where most_rounds is
    more, the race goes on until it is settled: it is looked at after `rounds`, twice as many, and so on, and a
    challenger is timed no further once its interval lies beyond the A/A floor, or below a gain of 1 %. The intervals
    of all looks hold together at `confidence` (`statistics.confidence_of_look`), so looking often costs no error.

    A race ends after the round in which `terms.budget_seconds` pass; with fewer than 8 rounds its interval decides
    nothing. Every sample is taken here, after the challengers were chosen: samples of the screening that chose them are
    not used, for the best of many noisy arms looks better than it is.

    Raises Wrong where the device ran something else than `terms.expected`, or an arm computes something else after the
    race than before it.
    """
    bench, clock = terms.bench, terms.clock
    rng = np.random.default_rng(terms.seed)
    first = prepare(runtime, bench, incumbent, terms.expected, terms.resolve)
    others = [prepare(runtime, bench, arm, terms.expected, terms.resolve) for arm in challengers]
    computed = outputs(runtime, bench, [first, *others])
    # What compiling takes (a driver may compile anew in each process) must not leave no time to measure.
    end = clock() + terms.budget_seconds
    contenders = [first, first, *others]
    timer = Timer(runtime, bench)
    repeats = warm_up(timer, contenders, rng, clock, clock() + WARM_UP_SHARE * (end - clock()))
    schedule = looks(rounds, max(rounds, most_rounds))
    level = confidence_of_look(len(schedule), confidence)
    samples: list[list[float]] = [[] for _ in contenders]
    live = list(range(len(contenders)))
    for done in range(1, schedule[-1] + 1):
        if clock() >= end or len(live) <= 2:
            break
        for index, seconds in one_round(timer, contenders, live, repeats, rng).items():
            samples[index].append(seconds)
        if len(schedule) > 1 and done in schedule:
            floor = noise_floor(samples[0], samples[1])
            live = [i for i in live if i < 2 or not settled(_interval(samples[0], samples[i], level), floor)]
        elif len(schedule) == 1 and done % LOOK_EVERY == 0:
            live = [i for i in live if i < 2 or _interval(samples[0], samples[i], level).high >= 1]
    check_unchanged([first, *others], computed, outputs(runtime, bench, [first, *others]))
    return [
        result(bench, incumbent, arm, samples[0], samples[1], mine, confidence, level)
        for arm, mine in zip(challengers, samples[2:], strict=True)
    ]


def warm_up(
    timer: Timer,
    contenders: Sequence[Contender],
    rng: np.random.Generator,
    clock: Callable[[], float],
    end: float,
) -> int:
    """Rounds until stable or `end`; returns how many runs one sample of each contender should hold.

    The same number for all, by the fastest of the last round: where noise is skewed, the mean of several runs has
    another median than one run has, and equal arms would seem to differ.
    """
    live = list(range(len(contenders)))
    totals: list[float] = []
    latest: dict[int, float] = {}
    while not latest or (clock() < end and not stable(totals)):
        latest = one_round(timer, contenders, live, 1, rng)
        totals.append(sum(latest.values()))
    return repeats_of(min(latest.values()))


def repeats_of(seconds: float) -> int:
    """How many runs of so many seconds one sample holds: about 2 ms of them, 16 at most."""
    return min(MOST_REPEATS, max(1, round(SHORTEST_SAMPLE_S / seconds)))


def one_round(
    timer: Timer, contenders: Sequence[Contender], live: Sequence[int], repeats: int, rng: np.random.Generator
) -> dict[int, float]:
    """Seconds of one sample of each live contender, by its index: the mean of at least `repeats` runs, see `plan`."""
    seconds = timer.runs([contenders[i] for i in live], plan(len(live), repeats, rng))
    return dict(zip(live, seconds, strict=True))


def plan(arms: int, repeats: int, rng: np.random.Generator) -> list[tuple[int, bool]]:
    """One submission: (arm, whether the run counts), each arm at least `repeats` times counted.

    Runs come in blocks of one arm each, about four runs long, and the order of the arms is drawn anew for each series
    of blocks: the first launches of a submission and the last take other times than those between (on one H200 40 %
    more, and 6 % less), and so each arm meets its share of both. Where a block has four runs, one before them is not
    counted: it finds the caches as another arm left them.
    """
    series = max(1, repeats // BLOCK_RUNS)
    runs = -(-repeats // series)
    leads = [False] if runs >= BLOCK_RUNS else []
    return [
        (int(arm), counts)
        for _ in range(series)
        for arm in rng.permutation(arms)
        for counts in [*leads, *([True] * runs)]
    ]


def _interval(incumbent: Sequence[float], challenger: Sequence[float], confidence: float) -> Interval:
    return median_interval(log_ratios(incumbent, challenger), confidence)


def result(
    bench: Bench,
    incumbent: Arm,
    challenger: Arm,
    incumbent_samples: Sequence[float],
    again_samples: Sequence[float],
    challenger_samples: Sequence[float],
    confidence: float = CONFIDENCE,
    level: float = CONFIDENCE,
) -> Race:
    """The race of one challenger from its samples, seconds f64[rounds], beside the incumbent's of the same rounds.

    again_samples: the incumbent's as its own A/A arm. level: confidence of this interval, which together with those of
    the looks before it holds at `confidence`.
    """
    rounds = len(challenger_samples)
    paired = [float(s) for s in incumbent_samples[:rounds]]
    interval = _interval(paired, challenger_samples, level)
    return Race(
        incumbent=incumbent,
        challenger=challenger,
        ratio=interval.middle,
        low=interval.low,
        high=interval.high,
        confidence=confidence,
        floor=noise_floor(paired, again_samples[:rounds]),
        incumbent_seconds=float(np.median(paired)) if paired else 0.0,
        challenger_seconds=float(np.median(challenger_samples)) if rounds else 0.0,
        rounds=rounds,
        copies=len(bench.copies),
        rotated_bytes=bench.rotated_bytes,
        cache_bytes=bench.cache_bytes,
        incumbent_samples=tuple(paired),
        challenger_samples=tuple(float(s) for s in challenger_samples),
    )
