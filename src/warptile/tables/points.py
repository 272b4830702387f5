"""What a table holds: a key says which matmul, a point what won at one measured m, a row a run of equal winners."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from warptile.contracts import Identity, Problem

CHECKOUT = "llama.cpp "
"""What the layout of a key begins with whose tiles are of a llama.cpp checkout's shaders."""


@dataclass(frozen=True, order=True)
class Key:
    """Everything of a matmul but its m: y[m, n] = sum_k x[m, k] * w[n, k], w in `format`, packed as `layout`; of a
    grouped one also how its tokens are taken to spread over experts (`Problem.routing`)."""

    format: str
    layout: str
    n: int
    k: int
    x_dtype: str = "fp32"
    y_dtype: str = "fp32"
    experts: int = 1
    top_k: int = 1
    routing: str = ""
    x_slots: bool = False
    summed: bool = False

    @classmethod
    def of(cls, problem: Problem, layout: str) -> Self:
        """The key of a problem."""
        p = problem
        grouped = (p.experts, p.top_k, p.routing, p.x_slots, p.summed)
        return cls(p.format, layout, p.n, p.k, p.x_dtype, p.y_dtype, *grouped)

    def problem(self, m: int) -> Problem:
        """The problem at m tokens."""
        own = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "layout"}
        return Problem(m=m, **own)


@dataclass(frozen=True)
class Validity:
    """What a measurement holds for: driver, compiler, the key of the compiled input, the proof's version.

    artefact: `Binary.key`, a hash of what the driver was given, so that a comment in a source changes nothing.
    """

    driver: str
    compiler: str
    artefact: str
    proof: int

    def stale(self, identity: Identity, proof: int, artefact: str | None = None) -> str:
        """Why the measurement does not hold here, in words; "" where it does. artefact None: not compared."""
        reasons = []
        if self.driver != identity.driver:
            reasons.append(f"driver was {self.driver}")
        if self.compiler != identity.compiler:
            reasons.append(f"compiler was {self.compiler}")
        if self.proof != proof:
            reasons.append(f"proof version was {self.proof}")
        if artefact is not None and self.artefact != artefact:
            reasons.append("the kernel's compiled input changed")
        return ", ".join(reasons)


@dataclass(frozen=True)
class Point:
    """The winner at one measured m.

    tile: its text form; stock: the tile it was raced against; seconds, stock_seconds: medians of that race.
    ratio: stock seconds / winner's seconds, paired, with the interval [low, high]; floor: the A/A floor (`Race`).
    rounds: how many it had. outcome, reason: the decision. measured: UTC time; run: the journal's run that measured it.
    """

    m: int
    tile: str
    stock: str
    seconds: float
    stock_seconds: float
    ratio: float
    low: float
    high: float
    floor: float
    outcome: str
    reason: str
    validity: Validity
    rounds: int = 0
    measured: str = ""
    run: str = ""

    @property
    def serves(self) -> bool:
        """False where the time ended before anything was raced: that the stock stayed then says nothing."""
        return self.outcome != "undecided" or self.rounds > 0


@dataclass(frozen=True)
class Row:
    """Neighbouring measured ms with one winner: tile serves [m_low, m_high], both of which were measured."""

    key: Key
    tile: str
    points: tuple[Point, ...]

    @property
    def m_low(self) -> int:
        """The smallest measured m."""
        return self.points[0].m

    @property
    def m_high(self) -> int:
        """The largest measured m."""
        return self.points[-1].m


def rows_of(key: Key, points: Iterable[Point]) -> list[Row]:
    """Points in order of m, neighbours with the same tile joined into one row."""
    rows: list[Row] = []
    for point in sorted(points, key=lambda p: p.m):
        if rows and rows[-1].tile == point.tile:
            rows[-1] = Row(key, point.tile, (*rows[-1].points, point))
        else:
            rows.append(Row(key, point.tile, (point,)))
    return rows
