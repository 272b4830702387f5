"""Tuning a kernel's pipelines: one size's tile at a time, the others untouched as controls, then the thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from warptile import formats
from warptile.contracts import CandidateRejected, Decision, Kernel, Price, Problem, Race, UnusableInput
from warptile.journal import Journal, entries, to_json
from warptile.journal.record import Record
from warptile.proof.version import PROOF_VERSION
from warptile.race import decide
from warptile.search import rank
from warptile.tables import SIZES, Pipeline, PipelineKey, Pipelines, Point, Table, Thresholds, Validity
from warptile.tuning.budget import Budget
from warptile.tuning.notes import now, source_hash
from warptile.tuning.stand import Proof, Stand

CANDIDATES = 6
ROUNDS, CONTROL_ROUNDS, CROSSING_ROUNDS = 40, 12, 12
SMALL_MS, MEDIUM_MS = (8, 16, 32, 64, 128), (32, 64, 128, 256, 512)
"""Numbers of tokens at which a size's tile is raced against the next larger size's, to place the threshold between."""
_PROVE_S, _LEAST_S = 90.0, 0.5


@dataclass(frozen=True)
class Control:
    """A pipeline that was not tuned, raced against itself after the one that was: its ratio must hold 1."""

    size: str
    tile: str
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class PipelineRow:
    """What tuning one size did. race: of the challenger against the tile before; None where nothing else was right."""

    size: str
    problem: Problem
    before: str
    after: str
    race: Race | None
    decision: Decision
    controls: tuple[Control, ...]


@dataclass(frozen=True)
class Crossing:
    """At m tokens the smaller size's tile was `ratio` times as fast as the larger's, with its interval."""

    smaller: str
    larger: str
    m: int
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class PipelinesResult:
    """pipelines: as the table keeps them now. rows: one a size tuned. crossings: what placed the thresholds."""

    pipelines: Pipelines
    rows: tuple[PipelineRow, ...]
    crossings: tuple[Crossing, ...]


def representatives(n: int, k: int, thresholds: Thresholds, base: Problem) -> dict[str, Problem]:
    """A problem of each size on w[n, k]: m at the size's threshold, the large one at four times the last.

    Raises UnusableInput where n alone makes the matmul small or medium, whatever m is.
    """
    if thresholds.size(4 * thresholds.medium_m, n) != "large":
        raise UnusableInput(f"pipelines: n = {n} is {thresholds.size(4 * thresholds.medium_m, n)} at every m")
    ms = {"small": thresholds.small_m, "medium": thresholds.medium_m, "large": 4 * thresholds.medium_m}
    return {size: replace(base, n=n, k=k, m=m, count=1) for size, m in ms.items()}


class PipelineTuner:
    """Tunes one kernel's pipelines for the format and types of `base`, on w[base.n, base.k].

    The table's entry is where it starts, else the kernel's stock tiles. seconds: of races, a size. clock: of the whole
    run, proofs included; None bounds races only. Each size gets an even share of what is left of it. Where it ends, no
    step is started: sizes and thresholds not decided by then stay as they were. A step begun before may overrun it.
    """

    def __init__(
        self,
        stand: Stand,
        kernel: Kernel,
        base: Problem,
        table: Table,
        journal: Journal,
        seconds: float,
        seed: int = 0,
        told: Callable[[str], None] = lambda line: None,
        clock: Budget | None = None,
    ) -> None:
        self._stand, self._kernel, self._table, self._journal = stand, kernel, table, journal
        self._seconds, self._seed, self._told = max(_LEAST_S, seconds), seed, told
        self._clock = clock or Budget(math.inf)
        self._until = 0.0
        self._limits, self._identity = stand.describe()
        self._record = Record(journal, self._identity, self._limits)
        key = PipelineKey.of(kernel.name, base, formats.by_name(base.format).layout.name)
        self.pipelines = table.pipelines_of(key) or Pipelines(key, Thresholds())
        self.problems = representatives(base.n, base.k, self.pipelines.thresholds, base)
        self._proofs: dict[tuple[str, Problem], Proof] = {}

    def tune(self, sizes: Sequence[str] = SIZES, place_thresholds: bool = True) -> PipelinesResult:
        """Tune these sizes in order, then place the thresholds; everything is kept in the table (not yet saved)."""
        rows = []
        for done, size in enumerate(sizes):
            waiting = len(sizes) - done - 1 + place_thresholds
            self._until = self._clock.left() * waiting / (waiting + 1) if waiting else 0.0
            rows.append(self._tune(size))
        self._until = 0.0
        untried = any(row.race is None and row.decision.outcome == "undecided" for row in rows)
        crossings = self._place_thresholds() if place_thresholds and not untried else ()
        self._keep()
        return PipelinesResult(self.pipelines, tuple(rows), crossings)

    def current(self, size: str) -> str:
        """The tile that a size has: the table's, else the stock tile, else the best-priced. Raises UnusableInput."""
        kept = self.pipelines.of_size(size)
        if kept is not None:
            return kept.point.tile
        problem = self.problems[size]
        stock = self._kernel.stock(problem, self._limits)
        if stock is not None and not self._kernel.broken_rules(stock, problem, self._limits):
            return stock.text()
        ranked = rank(problem, self._limits, [self._kernel])
        if not ranked:
            raise UnusableInput(f"{self._kernel.name} has no valid tile for {problem.text()} here")
        return ranked[0].tile.text()

    def _tune(self, size: str) -> PipelineRow:
        problem, before = self.problems[size], self.current(size)
        self._told(f"{size}: {problem.text()}")
        if not self._right(before, problem):
            if self._ended():
                return self._undecided(size, problem, before)
            raise UnusableInput(f"{size} pipeline: {before} is not right on {problem.text()}")
        offers = [c.tile.text() for c in rank(problem, self._limits, [self._kernel])]
        # Half of a size's share is kept for its races.
        end, self._until = self._until, self._until + 0.5 * self._left()
        right = [t for t in offers[:CANDIDATES] if t != before and not self._ended() and self._right(t, problem)]
        short, self._until = self._ended(), end
        if self._ended() or (short and not right):
            return self._undecided(size, problem, before)
        race, told = None, Decision("reject", "no other tile was right")
        if right:
            race, told = self._decide(problem, before, self._fastest(problem, before, right))
        after = race.challenger.tile if race is not None and told.outcome == "accept" else before
        self._put(size, problem, before, after, race, told)
        return PipelineRow(size, problem, before, after, race, told, self._controls(size))

    def _left(self) -> float:
        """Seconds until the share of the size being tuned ends; inf without a clock."""
        left = self._clock.left()
        return left if math.isinf(left) else max(0.0, left - self._until)

    def _ended(self) -> bool:
        return self._left() < _LEAST_S

    def _undecided(self, size: str, problem: Problem, before: str) -> PipelineRow:
        told = Decision("undecided", "the budget ended before a race")
        return PipelineRow(size, problem, before, before, None, told, ())

    def _right(self, tile: str, problem: Problem) -> bool:
        if (tile, problem) not in self._proofs:
            if self._ended():
                return False
            try:
                self._proofs[tile, problem] = self._stand.prove(
                    tile, [problem], self._seed, min(_PROVE_S, self._left())
                )
            except CandidateRejected as error:
                self._told(f"  {tile}: {error.outcome}: {error}")
                return False
        return self._proofs[tile, problem].verdict.right

    def _ids(self, problem: Problem, tiles: Sequence[str]) -> Mapping[str, int]:
        return {tile: self._proofs[tile, problem].verdict.binary for tile in tiles}

    def _fastest(self, problem: Problem, before: str, right: Sequence[str]) -> str:
        tiles = [before, *right]
        seconds = max(_LEAST_S, min(0.3 * self._seconds, 0.3 * self._left()))
        found = self._stand.screen(problem, self._ids(problem, tiles), seconds, self._seed, 30 + 10 * seconds)
        others = [s.arm.tile for s in (*found.survivors, *found.dropped) if s.arm.tile != before]
        return others[0] if others else right[0]

    def _race(self, problem: Problem, incumbent: str, challenger: str, rounds: int, seed: int, fresh: bool) -> Race:
        ids = self._ids(problem, [incumbent, challenger])
        seconds = max(_LEAST_S, min(0.3 * self._seconds, 0.3 * self._left()))
        with self._record.watching() as watched:
            race = self._stand.race(
                problem, incumbent, challenger, ids, seconds, rounds, seed, 30 + 10 * seconds, fresh
            )
        sources = self._source(incumbent, problem), self._source(challenger, problem)
        prices = self._price(incumbent, problem), self._price(challenger, problem)
        self._record.race("pipeline", race, sources, prices, watched.state)
        return race

    def _price(self, tile: str, problem: Problem) -> Price:
        return self._kernel.price(self._kernel.tile_type.parse(tile), problem, self._limits)

    def _source(self, tile: str, problem: Problem) -> str:
        own = self._kernel.tile_type.parse(tile)
        return source_hash(self._kernel.source(own, problem, self._limits))

    def _decide(self, problem: Problem, before: str, challenger: str) -> tuple[Race, Decision]:
        race = self._race(problem, before, challenger, ROUNDS, self._seed, False)
        told = decide(race)
        if told.outcome == "undecided" and race.low > 1 + race.floor:
            told = decide(race, self._race(problem, before, challenger, ROUNDS, self._seed + 1, True))
        return race, told

    def _controls(self, tuned: str) -> tuple[Control, ...]:
        """Every other size's tile against itself, on its own problem: what tuning one pipeline must leave alone."""
        controls = []
        for size in SIZES:
            if size == tuned or self._ended():
                continue
            tile, problem = self.current(size), self.problems[size]
            if self._right(tile, problem):
                race = self._race(problem, tile, tile, CONTROL_ROUNDS, self._seed + 2, False)
                controls.append(Control(size, tile, race.ratio, race.low, race.high))
        return tuple(controls)

    def _put(self, size: str, problem: Problem, before: str, after: str, race: Race | None, told: Decision) -> None:
        won = race is not None and after != before
        if race is None:
            # Seconds of the tile that stays come from racing it against itself.
            race = self._race(problem, before, before, CONTROL_ROUNDS, self._seed, False)
        point = Point(
            m=problem.m,
            tile=after,
            stock=before,
            seconds=race.challenger_seconds if won else race.incumbent_seconds,
            stock_seconds=race.incumbent_seconds,
            ratio=race.ratio if won else 1.0,
            low=race.low if won else 1.0,
            high=race.high if won else 1.0,
            floor=race.floor,
            rounds=race.rounds,
            outcome=told.outcome,
            reason=told.reason,
            validity=Validity(
                self._identity.driver,
                self._identity.compiler,
                self._proofs[after, problem].artefact,
                PROOF_VERSION,
            ),
            measured=now(),
            run=self._journal.run,
        )
        self.pipelines = self.pipelines.with_pipeline(Pipeline(size, problem.n, problem.k, point))

    def _place_thresholds(self) -> tuple[Crossing, ...]:
        """m up to which each size's tile is at least as fast as the next larger's; n's thresholds stay."""
        small, first = self._crossing("small", "medium", SMALL_MS)
        medium, second = self._crossing("medium", "large", MEDIUM_MS)
        old = self.pipelines.thresholds
        if small is None or medium is None:
            return first + second
        thresholds = replace(old, small_m=small, medium_m=max(small, medium))
        self.pipelines = replace(self.pipelines, thresholds=thresholds)
        return first + second

    def _crossing(self, smaller: str, larger: str, ms: Sequence[int]) -> tuple[int | None, tuple[Crossing, ...]]:
        """The largest of `ms` before the first at which the smaller size's tile loses; 0 at once, None: no time."""
        one, other = self.current(smaller), self.current(larger)
        best = 0
        found: list[Crossing] = []
        for m in ms:
            problem = replace(self.problems[smaller], m=m)
            if one == other:
                return ms[-1], ()
            right = self._right(one, problem) and self._right(other, problem)
            if self._ended():
                return None, tuple(found)
            if not right:
                break
            race = self._race(problem, other, one, CROSSING_ROUNDS, self._seed + 3, False)
            found.append(Crossing(smaller, larger, m, race.ratio, race.low, race.high))
            if race.ratio < 1:
                break
            best = m
        return best, tuple(found)

    def _keep(self) -> None:
        self._table.put_pipelines(self.pipelines)
        self._journal.append(entries.run("pipelines", self._identity, pipelines=to_json(self.pipelines)))
