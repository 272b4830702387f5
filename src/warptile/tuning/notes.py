"""What one run writes down: journal lines and table points, and the counts a person is told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from warptile.contracts import (
    CandidateRejected,
    Decision,
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
from warptile.journal import Journal, entries
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


class Notes:
    """The record of one run on one device. tried, rejected: candidates proved or refused in this run."""

    def __init__(
        self,
        journal: Journal,
        table: Table,
        recall: Recall,
        identity: Identity,
        limits: Limits,
        kernels: Mapping[str, Kernel],
    ) -> None:
        self.journal, self.table, self.recall, self.identity = journal, table, recall, identity
        self.tried = 0
        self.rejected = 0
        self._limits, self._kernels = limits, kernels
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
        self.journal.append(
            entries.candidate(self.identity, text, problem, error.outcome, str(error), source, price, deadline)
        )

    def proof(self, text: str, problem: Problem, ks: list[int], proof: Proof) -> None:
        """The proof spoke."""
        self.tried += 1
        self.rejected += not proof.verdict.right
        source, price = self.source_of(text, problem), self.price(text, problem)
        self.journal.append(
            entries.verdict(
                self.identity, text, problem, proof.verdict, source, proof.artefact, ks, proof.compile_seconds, price
            )
        )

    def screening(self, problem: Problem, screening: Screening, expected: Mapping[str, Expected]) -> None:
        """Tiles were compared. expected: what the corrected price said of them before."""
        measured = [(s.arm.tile, s.seconds, s.samples) for s in (*screening.survivors, *screening.dropped)]
        arms = [
            {
                "tile": tile,
                "source": self.source_of(tile, problem),
                "seconds": seconds,
                "samples": samples,
                "predicted": self.price(tile, problem),
                "corrected": expected.get(tile),
            }
            for tile, seconds, samples in [*measured, *((arm.tile, None, 0) for arm in screening.unmeasured)]
        ]
        self.journal.append(entries.screening(self.identity, problem, arms))

    def race(self, stage: str, race: Race) -> None:
        """A race ended."""
        problem, tiles = race.challenger.problem, (race.incumbent.tile, race.challenger.tile)
        sources = (self.source_of(tiles[0], problem), self.source_of(tiles[1], problem))
        self.journal.append(entries.race(self.identity, stage, race, sources, self.price(tiles[1], problem)))

    def decide(self, problem: Problem, layout: str, challenger: str, point: Point) -> None:
        """What is served from now on: journal first, then the table, saved at once."""
        told = Decision(point.outcome, point.reason)
        self.journal.append(entries.decision(self.identity, problem, point.stock, challenger, told))
        key = self.table.put(problem, layout, point)
        self.journal.append(entries.table(self.identity, "put", key, point))
        self.table.save()


def now() -> str:
    """UTC time to the second, as tables hold it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
