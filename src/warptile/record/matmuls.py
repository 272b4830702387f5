"""A journal's history sorted by device and matmul."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from warptile.contracts import Ceilings, Identity, Limits, Price, Problem, Race, Resources, Workload
from warptile.journal import from_json
from warptile.journal.facts import Decided, Proved, Raced, Refused
from warptile.journal.history import History
from warptile.journal.record import STUDY
from warptile.record.scale import joined
from warptile.tables import Key
from warptile.tuning.result import bare

FINAL = ("final", "confirm", "recheck")
"""Stages whose races decide what a table serves."""


@dataclass(frozen=True)
class Tried:
    """One tile of a matmul. price: on paper. resources: by the driver's compiler. right: what the proof said, None
    where none is on record. seconds: on the matmul's common scale, None where it was not timed or was proved wrong
    (tiles are screened before they are proved)."""

    tile: str
    price: Price | None
    resources: Resources | None
    right: bool | None
    seconds: float | None

    @property
    def kernel(self) -> str:
        """The kernel's full name."""
        return self.tile.split(":", 1)[0]

    @property
    def spills(self) -> bool | None:
        """Whether the compiler put registers in memory; None where it does not say."""
        if self.resources is None:
            return None
        counts = (self.resources.spilled_registers, self.resources.spill_bytes)
        known = [count for count in counts if count is not None]
        return any(known) if known else None


@dataclass(frozen=True)
class MatmulRecord:
    """One matmul on one device. problem: with count 1. tried: the fastest first, then those without a time.

    races: of the deciding stages, oldest first. refused: candidates that were out before a race. decided: the last
    decision about what is served. forgotten: whether the table dropped it since (`table forget`).
    """

    identity: Identity
    problem: Problem
    tried: tuple[Tried, ...]
    races: tuple[Raced, ...]
    refused: tuple[Refused, ...]
    decided: Decided | None
    forgotten: bool = False

    @property
    def last_race(self) -> Race | None:
        """The last race of the decided pair, None where none was run; without a decision the last of all."""
        if self.decided is None:
            return self.races[-1].race if self.races else None
        pair = (self.decided.incumbent, self.decided.challenger)
        mine = (r.race for r in reversed(self.races) if (r.race.incumbent.tile, r.race.challenger.tile) == pair)
        return next(mine, None)

    @property
    def accepted(self) -> bool:
        """Whether the challenger replaced the stock tile."""
        return self.decided is not None and self.decided.decision.outcome == "accept"

    @property
    def champion(self) -> str:
        """The tile that stands: the accepted challenger, else the incumbent; "" where nothing was raced."""
        race = self.last_race
        if self.decided is not None:
            return self.decided.challenger if self.accepted else self.decided.incumbent
        return "" if race is None else race.incumbent.tile

    @property
    def stock_seconds(self) -> float | None:
        """Median seconds of the incumbent in the last race."""
        race = self.last_race
        return None if race is None else race.incumbent_seconds

    @property
    def seconds(self) -> float | None:
        """Median seconds of the champion in the last race."""
        race = self.last_race
        if race is None:
            return None
        return race.challenger_seconds if race.challenger.tile == self.champion else race.incumbent_seconds

    @property
    def runner_up(self) -> Tried | None:
        """The fastest timed tile that is not the champion."""
        return next((t for t in self.tried if t.seconds is not None and t.tile != self.champion), None)

    def of(self, tile: str) -> Tried | None:
        """What is on record of a tile."""
        return next((t for t in self.tried if t.tile == tile), None)


@dataclass(frozen=True)
class DeviceRecord:
    """One device under its newest driver and compiler. older: races under earlier ones, which are left out.

    limits, ceilings: as the journal holds them. workloads: models that were asked for, oldest first.
    """

    identity: Identity
    limits: Limits | None
    ceilings: Ceilings | None
    matmuls: tuple[MatmulRecord, ...]
    workloads: tuple[Workload, ...]
    older: int = 0


def records_of(history: History) -> tuple[DeviceRecord, ...]:
    """Every device a history has races of, the last measured first."""
    newest: dict[tuple[str, str], tuple[str, Identity]] = {}
    for raced in history.races:
        key = _card(raced.identity)
        newest[key] = max(newest.get(key, ("", raced.identity)), (raced.time, raced.identity), key=lambda e: e[0])
    found = sorted(newest.values(), key=lambda each: each[0], reverse=True)
    return tuple(_device(history, identity) for _, identity in found)


def _card(identity: Identity) -> tuple[str, str]:
    return identity.runtime, identity.device


def _device(history: History, identity: Identity) -> DeviceRecord:
    runs = [run for run in history.runs.values() if run.identity == identity]
    same = (raced for raced in history.races if _card(raced.identity) == _card(identity))
    older = sum(raced.identity != identity for raced in same)
    workloads = {run.workload.name: run.workload for run in runs if run.workload is not None}
    problems = {bare(t.problem) for t in history.timings if t.identity == identity}
    return DeviceRecord(
        identity,
        next((run.limits for run in reversed(runs) if run.limits is not None), None),
        next((run.ceilings for run in reversed(runs) if run.ceilings is not None), None),
        tuple(_matmul(history, identity, problem) for problem in sorted(problems)),
        tuple(workloads.values()),
        older,
    )


def _matmul(history: History, identity: Identity, problem: Problem) -> MatmulRecord:
    timings = [t for t in history.timings if t.identity == identity and bare(t.problem) == problem]
    by_ref: dict[str, dict[str, tuple[float, int]]] = defaultdict(dict)
    newest: dict[str, tuple[bool, str, int]] = {}
    prices: dict[str, Price] = {}
    for timing in timings:
        by_ref[timing.ref][timing.tile] = (timing.seconds, max(timing.samples, 1))
        newest[timing.ref] = (_decides(history, timing.stage, timing.run), timing.time, len(newest))
        if timing.price is not None:
            prices[timing.tile] = timing.price
    # The newest race sets the scale: its seconds are what the table tells.
    order = sorted(by_ref, key=newest.__getitem__, reverse=True)
    seconds = joined(by_ref[ref] for ref in order)
    proofs = _proofs(history.verdicts, identity, problem)
    prices |= {tile: p.price for tile, p in proofs.items() if p.price is not None and tile not in prices}
    tried = [
        Tried(
            tile,
            prices.get(tile),
            proofs[tile].resources if tile in proofs else None,
            proofs[tile].verdict.right if tile in proofs else None,
            None if tile in proofs and not proofs[tile].verdict.right else seconds.get(tile),
        )
        for tile in dict.fromkeys([*seconds, *prices, *proofs])
    ]
    tried.sort(key=lambda t: (t.seconds is None, t.seconds or 0.0, t.tile))
    # What a study concludes of its two arms changes nothing that is served.
    told = (d for d in history.decisions if d.layout != STUDY)
    decided = [d for d in told if d.identity == identity and bare(d.problem) == problem]
    races = (r for r in history.races if r.identity == identity and bare(r.race.challenger.problem) == problem)
    refused = (c for c in history.candidates if c.identity == identity and bare(c.problem) == problem)
    return MatmulRecord(
        identity,
        problem,
        tuple(tried),
        tuple(r for r in races if _decides(history, r.stage, r.run)),
        tuple(refused),
        decided[-1] if decided else None,
        bool(decided) and _forgotten(history, decided[-1]),
    )


def _forgotten(history: History, decided: Decided) -> bool:
    """Whether the last change of the table for what was decided, not older than that, dropped it."""
    problem, found = bare(decided.problem), False
    for kept in history.points:
        if kept.identity == decided.identity and kept.time >= decided.time:
            try:
                key = from_json(Key, kept.key)
            except ValueError:
                continue
            if Key.of(problem, key.layout) == key:
                found = kept.point is None
    return found


def _decides(history: History, stage: str, run: str) -> bool:
    """Whether a race was about what is served: a study confirms its arms too."""
    noted = history.runs.get(run)
    return stage in FINAL and (noted is None or noted.verb != "study")


def _proofs(verdicts: Iterable[Proved], identity: Identity, problem: Problem) -> dict[str, Proved]:
    """The last proof of each tile on the matmul's format, m and type: matmuls that share them share binaries."""
    mine = (problem.format, problem.m, problem.x_dtype, problem.experts)
    found = {}
    for proved in verdicts:
        p = proved.problem
        if proved.identity == identity and (p.format, p.m, p.x_dtype, p.experts) == mine:
            found[proved.tile] = proved
    return found
