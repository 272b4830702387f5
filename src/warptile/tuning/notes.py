"""What one run writes down: journal lines and table points, and the counts a person is told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from warptile.contracts import (
    CandidateRejected,
    Decision,
    DeviceState,
    Identity,
    Kernel,
    Limits,
    Price,
    Problem,
    Race,
    Tile,
    UnusableInput,
)
from warptile.contracts.launch import Source
from warptile.journal import Asked, Entry, Journal, Prediction, entries
from warptile.journal.record import STUDY, Record
from warptile.race import Screening
from warptile.tables import Point, Table
from warptile.tuning.recall import Recall
from warptile.tuning.stand import Proof


def source_hash(source: Source) -> str:
    """SHA-256, hexadecimal, of everything a kernel hands to the compiler, its helpers included."""
    parts = [source.language, source.text, sorted(source.constants), source.subgroup, sorted(source.features)]
    if source.helpers:
        parts.append([source_hash(helper) for helper in source.helpers])
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Expected:
    """The corrected price of a tile before it was measured: seconds, and the standard deviation of their logarithm."""

    seconds: float
    deviation: float


class Book:
    """What a run writes of candidates and races: each with its price and the hash of its source.

    kernels: by name. tried, rejected: candidates proved or refused in this run. proving: seconds that proofs took,
    compiling left out.
    """

    def __init__(self, record: Record, kernels: Mapping[str, Kernel]) -> None:
        self.record = record
        self.tried = 0
        self.rejected = 0
        self.proving = 0.0
        self._limits, self._kernels = record.limits, kernels
        self._sources: dict[tuple[str, Problem], str] = {}

    def parse(self, text: str) -> tuple[Kernel, Tile]:
        """The kernel and tile of a text form. Raises UnusableInput where this version knows no such tile."""
        name = text.split(":", 1)[0]
        if name not in self._kernels:
            raise UnusableInput(f"no kernel {name!r} for this device")
        return self._kernels[name], self._kernels[name].tile_type.parse(text)

    def source_of(self, text: str, problem: Problem) -> str:
        """The hash of a tile's source on a problem; "" where this version cannot make it."""
        if (text, problem) not in self._sources:
            self._sources[text, problem] = self._source_of(text, problem)
        return self._sources[text, problem]

    def _source_of(self, text: str, problem: Problem) -> str:
        try:
            kernel, tile = self.parse(text)
            if kernel.broken_rules(tile, problem, self._limits):
                return ""
            return source_hash(kernel.source(tile, problem, self._limits))
        except (UnusableInput, CandidateRejected):
            return ""

    def price(self, text: str, problem: Problem) -> Price | None:
        """What a tile costs on paper; None where it is not valid."""
        kernel, tile = self.parse(text)
        if kernel.broken_rules(tile, problem, self._limits):
            return None
        return kernel.price(tile, problem, self._limits)

    def reject(self, text: str, problem: Problem, error: CandidateRejected, deadline: float) -> None:
        """A candidate is out; deadline: seconds the step was given."""
        self.rejected += 1
        source, price = self.source_of(text, problem), self.price(text, problem)
        self.record.append(
            entries.candidate(self.record.identity, text, problem, error.outcome, str(error), source, price, deadline)
        )

    def proof(self, text: str, problem: Problem, ks: list[int], proof: Proof) -> None:
        """The proof spoke."""
        self.tried += 1
        self.rejected += not proof.verdict.right
        self.proving += proof.seconds
        source, price = self.source_of(text, problem), self.price(text, problem)
        self.record.append(
            entries.verdict(
                self.record.identity,
                text,
                problem,
                proof.verdict,
                source,
                proof.artefact,
                ks,
                proof.compile_seconds,
                price,
                proof.resources,
                self.record.asked.verb or "tune",
            )
        )

    def hypothesis(
        self,
        problem: Problem,
        control: str,
        arm: str,
        because: str = "",
        names: Sequence[str] = (),
        said: Prediction | None = None,
    ) -> str:
        """What the prices, or the person who asked, expect of two tiles that race next; its reference.

        because, names, said: as in `Record.hypothesis`.
        """
        prices = (self.price(control, problem), self.price(arm, problem))
        return self.record.hypothesis(problem, (control, arm), prices, because, names, said)

    def race(self, stage: str, race: Race, hypothesis: str | None = None, state: DeviceState | None = None) -> str:
        """A race ended; hypothesis: the reference of what it answers. Its own reference."""
        problem, tiles = race.challenger.problem, (race.incumbent.tile, race.challenger.tile)
        sources = (self.source_of(tiles[0], problem), self.source_of(tiles[1], problem))
        prices = (self.price(tiles[0], problem), self.price(tiles[1], problem))
        return self.record.race(stage, race, sources, prices, state, hypothesis)

    def study_decision(
        self, problem: Problem, control: str, arm: str, told: Decision, hypothesis: str, races: Sequence[str]
    ) -> str:
        """What a study concludes, which changes no table; its reference."""
        return self.record.decision(problem, control, arm, told, hypothesis, races, STUDY)


class Notes(Book):
    """The record of one tune on one device: also of what its table serves from now on.

    asked: who asked and why; past: entries of earlier runs; uuid: the device's, where it is known.
    """

    def __init__(
        self,
        journal: Journal,
        table: Table,
        recall: Recall,
        identity: Identity,
        limits: Limits,
        kernels: Mapping[str, Kernel],
        asked: Asked | None = None,
        past: Iterable[Entry] = (),
        uuid: str = "",
    ) -> None:
        super().__init__(Record(journal, identity, limits, asked, past, uuid=uuid), kernels)
        self.journal, self.table, self.recall, self.identity = journal, table, recall, identity

    def screening(
        self,
        problem: Problem,
        screening: Screening,
        state: DeviceState | None = None,
        expected: Mapping[str, Expected] | None = None,
    ) -> None:
        """Tiles were compared. expected: what the corrected price said of them before."""
        measured = [(s.arm.tile, s.seconds, s.samples) for s in (*screening.survivors, *screening.dropped)]
        arms = [
            {
                "tile": tile,
                "source": self.source_of(tile, problem),
                "seconds": seconds,
                "samples": samples,
                "predicted": self.price(tile, problem),
                "corrected": (expected or {}).get(tile),
            }
            for tile, seconds, samples in [*measured, *((arm.tile, None, 0) for arm in screening.unmeasured)]
        ]
        self.journal.append(entries.screening(self.identity, problem, arms, state))

    def decide(
        self,
        problem: Problem,
        layout: str,
        challenger: str,
        point: Point,
        hypothesis: str | None = None,
        races: Sequence[str] = (),
    ) -> None:
        """What is served from now on: journal first, then the table, saved at once."""
        told = Decision(point.outcome, point.reason)
        self.record.decision(problem, point.stock, challenger, told, hypothesis, races, layout)
        key = self.table.put(problem, layout, point)
        self.journal.append(entries.table(self.identity, "put", key, point))
        self.table.save()


def now() -> str:
    """UTC time to the second, as tables hold it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
