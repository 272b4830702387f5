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

    Everything is compiled first. A first pass in the order given runs each arm twice and keeps the second time; an arm
    over 3 times the fastest there is dropped. Each rung then adds `samples` passes over the arms left, in random order,
    and drops the slower half by median, and any arm over 1.25 times the fastest. Time is asked for before each pass,
    and in the first pass before each arm, so arms should come most promising first.
    """
    rng = np.random.default_rng(seed)
    contenders = [prepare(runtime, bench, arm, expected, resolve) for arm in arms]
    # What compiling takes (a driver may compile anew in each process) must not leave no time to measure.
    end = clock() + budget_seconds
    timer = Timer(runtime, bench)
    taken: list[list[float]] = [[] for _ in arms]
    for i, contender in enumerate(contenders):
        if clock() >= end:
            break
        timer.sample([contender], [1])
        taken[i] += timer.sample([contender], [1])
    live = [i for i, mine in enumerate(taken) if mine]
    unmeasured = tuple(arm for arm, mine in zip(arms, taken, strict=True) if not mine)
    if live:
        fastest = min(taken[i][0] for i in live)
        live = sorted((i for i in live if taken[i][0] <= HOPELESS * fastest), key=lambda i: taken[i][0])
    rung = 0
    while live and clock() < end and (rung == 0 or len(live) > keep):
        _passes(timer, contenders, taken, live, samples, rng, clock, end)
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


def _passes(
    timer: Timer,
    contenders: Sequence[Contender],
    taken: list[list[float]],
    live: Sequence[int],
    samples: int,
    rng: np.random.Generator,
    clock: Callable[[], float],
    end: float,
) -> None:
    for _ in range(samples):
        if clock() >= end:
            return
        for i in rng.permutation(np.array(live)):
            taken[i] += timer.sample([contenders[i]], [1])
