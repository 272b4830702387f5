"""Screening: many arms, a few rounds each, the slower half out at every rung."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warptile.contracts import Arm, CandidateRejected, Runtime
from warptile.race.bench import UNPROVED, Contender, Timer, prepare
from warptile.race.racing import one_round, repeats_of
from warptile.race.statistics import levels, survivors
from warptile.race.terms import Terms

HOPELESS = 3.0
HOPELESS_COLD = 8.0
"""A card that was idle takes up to seven times as long for the short runs that find it so (measured on an H200)."""
SECOND_LOOK_S = 4e-4
MOST_LOOKS = 8
RUNG_S = 0.25
MOST_ROUNDS = 16


@dataclass(frozen=True)
class Screened:
    """An arm's seconds beside the other arms of its screening; flattered by selection, never evidence.

    They are the median of the arm that led at the end, times how much slower this one was in the rounds both were in;
    of an arm that was in no round, what it took in the first pass.
    """

    arm: Arm
    seconds: float
    samples: int


@dataclass(frozen=True)
class Screening:
    """survivors: fastest first. dropped: slower arms, with what was measured. unmeasured: out of time. refused: arms
    without a proof that did not compile or do not fit, and why."""

    survivors: tuple[Screened, ...]
    dropped: tuple[Screened, ...]
    unmeasured: tuple[Arm, ...]
    refused: tuple[tuple[Arm, CandidateRejected], ...] = ()


class Field:
    """Arms in rounds together, and how far each is behind the fastest of its last round.

    live: indices of the arms still timed, fastest first once `rank` was asked; all of them were in every round.
    """

    def __init__(self, timer: Timer, contenders: Sequence[Contender], live: Sequence[int], repeats: int) -> None:
        self._timer, self._contenders, self._repeats = timer, contenders, repeats
        self.live = list(live)
        self.samples: list[list[float]] = [[] for _ in contenders]
        self.behind = np.zeros(len(contenders))

    def rounds(self, count: int, rng: np.random.Generator, clock: Callable[[], float], end: float) -> bool:
        """Time `count` rounds of the live arms, the first in any case; False where `end` came before the last."""
        for done in range(count):
            if done and clock() >= end:
                return False
            for index, seconds in one_round(self._timer, self._contenders, self.live, self._repeats, rng).items():
                self.samples[index].append(seconds)
        return clock() < end

    def rank(self) -> None:
        """Put the live arms in order of their levels over all rounds so far."""
        level = levels([self.samples[i] for i in self.live])
        order = np.argsort(level, kind="stable")
        self.behind[self.live] = level - level[order[0]]
        self.live = [self.live[i] for i in order]

    def result(self, arms: Sequence[Arm], keep: int, first: Mapping[int, float]) -> Screening:
        """What was found of arms that were in rounds, and of those that had a first pass only (seconds by index)."""
        leader = float(np.median(self.samples[self.live[0]])) if self.live and self.samples[self.live[0]] else 0.0
        found = {i: Screened(arms[i], seconds, 1) for i, seconds in first.items()}
        for i, taken in enumerate(self.samples):
            if taken:
                found[i] = Screened(arms[i], leader * float(np.exp(self.behind[i])), len(taken))
        kept = self.live[:keep]
        return Screening(
            tuple(sorted((found[i] for i in kept), key=lambda s: s.seconds)),
            tuple(sorted((found[i] for i in found if i not in kept), key=lambda s: s.seconds)),
            tuple(arm for i, arm in enumerate(arms) if i not in found),
        )


def screen(
    runtime: Runtime,
    arms: Sequence[Arm],
    terms: Terms,
    *,
    keep: int = 4,
    samples: int = 3,
) -> Screening:
    """Successive halving down to at most `keep` arms.

    Everything is compiled first. A first pass in the order given runs each arm once, and again 0.4 ms long where that
    was not over 8 times the fastest; the lesser time counts. Those over 3 times the fastest at its end have one more
    look, since an idle card raises its clock while the first arms run, which are the most promising; who still is over
    is dropped. Each rung then adds rounds of the arms left, in random order in one
    submission, at least `samples` and as many as a quarter of a second holds, 16 at most. It drops the slower half, by
    the median over rounds of what an arm took beside the others of the round, and any arm over 1.25 times the fastest.
    Time is asked for before each round, and in the first pass before each arm, so arms should come most promising
    first. `terms.expected` has `UNPROVED` for a tile that was not proved.
    """
    clock = terms.clock
    rng = np.random.default_rng(terms.seed)
    contenders, refused = prepared(runtime, arms, terms)
    # What compiling takes (a driver may compile anew in each process) must not leave no time to measure.
    end = clock() + terms.budget_seconds
    timer = Timer(runtime, terms.bench)
    first: dict[int, float] = {}
    for i, contender in enumerate(contenders):
        if clock() >= end:
            break
        first[i] = timer.sample([contender], [1])[0]
        if first[i] <= HOPELESS_COLD * min(first.values()):
            first[i] = min(first[i], _looked_at(timer, contender, first[i]))
    fastest = min(first.values(), default=0.0)
    for i in [i for i, seconds in first.items() if HOPELESS < seconds / fastest <= HOPELESS_COLD]:
        if clock() < end:
            first[i] = min(first[i], _looked_at(timer, contenders[i], first[i]))
    fastest = min(first.values(), default=0.0)
    live = sorted((i for i in first if first[i] <= HOPELESS * fastest), key=lambda i: first[i])
    repeats = repeats_of(fastest) if first else 1
    field = Field(timer, contenders, live, repeats)
    rung = 0
    while field.live and clock() < end and (rung == 0 or len(field.live) > keep):
        once = sum(first[i] * repeats for i in field.live)
        count = int(min(MOST_ROUNDS, max(samples, RUNG_S / once)))
        field.rounds(count, rng, clock, end)
        field.rank()
        order = survivors(np.array([field.samples[i] for i in field.live]), keep)
        field.live = [field.live[i] for i in order]
        rung += 1
    found = field.result([c.arm for c in contenders], keep, first)
    return dataclasses.replace(found, refused=refused)


def _looked_at(timer: Timer, contender: Contender, seconds: float) -> float:
    """An arm's mean seconds over about 0.4 ms of runs that took `seconds` each."""
    return timer.sample([contender], [min(MOST_LOOKS, max(1, round(SECOND_LOOK_S / seconds)))])[0]


def prepared(
    runtime: Runtime, arms: Sequence[Arm], terms: Terms
) -> tuple[list[Contender], tuple[tuple[Arm, CandidateRejected], ...]]:
    """Arms compiled, and those without a proof that could not be. Raises as `prepare` does for a proved arm."""
    ready: list[Contender] = []
    refused: list[tuple[Arm, CandidateRejected]] = []
    for arm in arms:
        try:
            ready.append(prepare(runtime, terms.bench, arm, terms.expected, terms.resolve))
        except CandidateRejected as error:
            if (terms.expected or {}).get(arm.tile) != UNPROVED:
                raise
            refused.append((arm, error))
    return ready, tuple(refused)
