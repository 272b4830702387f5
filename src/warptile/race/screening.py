"""Screening: many arms, a few interleaved samples each, the slower half out at every rung."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warptile import kernels
from warptile.contracts import Arm, Runtime
from warptile.race.bench import Bench, Contender, Resolve, Timer, prepare
from warptile.race.statistics import survivors

HOPELESS = 3.0
HOPELESS_COLD = 8.0
SAMPLE_SECONDS = 4e-4
MOST_REPEATS = 8
SUBMITTED_SECONDS = 0.1
MOST_SUBMITTED = 128


@dataclass(frozen=True)
class Screened:
    """An arm's median over the screening's samples, in device seconds; flattered by selection, never evidence."""

    arm: Arm
    seconds: float
    samples: int


@dataclass(frozen=True)
class Screening:
    """survivors: fastest first. dropped: slower arms, with what was measured. unmeasured: out of time."""

    survivors: tuple[Screened, ...]
    dropped: tuple[Screened, ...]
    unmeasured: tuple[Arm, ...]


def screen(
    runtime: Runtime,
    arms: Sequence[Arm],
    *,
    bench: Bench,
    seed: int,
    budget_seconds: float,
    keep: int = 4,
    samples: int = 3,
    expected: Mapping[str, int] | None = None,
    resolve: Resolve = kernels.parse_tile,
    clock: Callable[[], float] = time.monotonic,
) -> Screening:
    """Successive halving down to at most `keep` arms.

    Everything is compiled first. A first pass in the order given runs each arm once; what takes over 8 times the
    fastest there, twice, is dropped. A second pass, of all arms together, sets how many runs a sample of each arm has,
    0.4 ms of them or 8 at most, and drops arms over 3 times the fastest. Each rung then adds `samples` passes over the
    arms left, in random order, and drops the slower half by median, and any arm over 1.25 times the fastest. Arms are
    submitted many at a time: a card that waits between short runs slows its clock down. Time is asked for before each
    submission, and in the first pass before each arm, so arms should come most promising first.

    expected: ids of the proved binaries by tile text, 0 for one that was not proved.
    """
    rng = np.random.default_rng(seed)
    contenders = [prepare(runtime, bench, arm, expected, resolve) for arm in arms]
    # What compiling takes (a driver may compile anew in each process) must not leave no time to measure.
    end = clock() + budget_seconds
    timer = Timer(runtime, bench)
    cold: dict[int, float] = {}
    for i, contender in enumerate(contenders):
        if clock() >= end:
            break
        cold[i] = timer.sample([contender], [1])[0]
        if cold[i] > HOPELESS_COLD * min(cold.values()):
            cold[i] = min(cold[i], timer.sample([contender], [1])[0])
    unmeasured = tuple(arm for i, arm in enumerate(arms) if i not in cold)
    taken = [[cold[i]] if i in cold else [] for i in range(len(arms))]
    live = [i for i in cold if cold[i] <= HOPELESS_COLD * min(cold.values())]
    plan = _Plan(timer, contenders, rng, clock, end)
    for i, seconds in plan.passed(live, dict.fromkeys(live, 1), cold).items():
        taken[i] = [seconds]
    if live:
        fastest = min(taken[i][0] for i in live)
        live = sorted((i for i in live if taken[i][0] <= HOPELESS * fastest), key=lambda i: taken[i][0])
    latest = {i: taken[i][0] for i in live}
    repeats = {i: min(MOST_REPEATS, max(1, round(SAMPLE_SECONDS / latest[i]))) for i in live}
    rung = 0
    while live and clock() < end and (rung == 0 or len(live) > keep):
        for _ in range(samples):
            for i, seconds in plan.passed(live, repeats, latest).items():
                # The single run before the first sample was to find out how long one takes.
                taken[i] = [*(taken[i] if repeats[i] == 1 or i in plan.sampled else []), seconds]
                plan.sampled.add(i)
        fewest = min(len(taken[i]) for i in live)
        order = survivors(np.array([taken[i][-fewest:] for i in live]), keep)
        live = [live[i] for i in order]
        rung += 1
    results = [
        Screened(arm, float(np.median(mine)), len(mine)) if mine else None
        for arm, mine in zip(arms, taken, strict=True)
    ]
    kept = sorted((r for i in live[:keep] if (r := results[i]) is not None), key=lambda r: r.seconds)
    out = [r for i, r in enumerate(results) if r is not None and i not in live[:keep]]
    return Screening(tuple(kept), tuple(sorted(out, key=lambda r: r.seconds)), unmeasured)


class _Plan:
    """Passes over arms, in submissions of about 0.1 s. sampled: arms that a rung has sampled."""

    def __init__(
        self,
        timer: Timer,
        contenders: Sequence[Contender],
        rng: np.random.Generator,
        clock: Callable[[], float],
        end: float,
    ) -> None:
        self._timer, self._contenders, self._rng, self._clock, self._end = timer, contenders, rng, clock, end
        self.sampled: set[int] = set()

    def passed(self, live: Sequence[int], repeats: Mapping[int, int], guess: Mapping[int, float]) -> dict[int, float]:
        """Seconds of a run of each arm, in random order; without those that the time did not reach."""
        found: dict[int, float] = {}
        order = [int(i) for i in self._rng.permutation(np.array(live, int))]
        while order and self._clock() < self._end:
            part = [order.pop(0)]
            while order and self._fits([*part, order[0]], repeats, guess):
                part.append(order.pop(0))
            seconds = self._timer.sample([self._contenders[i] for i in part], [repeats[i] for i in part])
            found |= dict(zip(part, seconds, strict=True))
        return found

    def _fits(self, part: Sequence[int], repeats: Mapping[int, int], guess: Mapping[int, float]) -> bool:
        total = sum(repeats[i] * guess[i] for i in part)
        return total <= SUBMITTED_SECONDS and sum(repeats[i] for i in part) <= MOST_SUBMITTED
