"""What a tune hands back, and what it says while it works."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from warptile.contracts import Decision, Identity, Problem, Race
from warptile.journal import to_json

Reuse = Literal["new", "rechecked", "resumed"]


class Interrupted(KeyboardInterrupt):
    """The user stopped a tune. tried: candidates proved in it; journal: the file that holds everything measured."""

    def __init__(self, tried: int, journal: Path) -> None:
        super().__init__(
            f"stopped: {tried} candidates of this run are in {journal}; the same command resumes from there"
        )
        self.tried = tried
        self.journal = journal


@dataclass(frozen=True)
class Event:
    """One step of a tune, for a person who watches.

    stage: "open", "prove", "race", "refine", "recheck" or "decide"; text: what is measured now. best: problem text
    -> (seconds, seconds of the stock tile) so far. spent, left: seconds of the budget. tried: candidates so far.
    """

    stage: str
    text: str
    spent: float
    left: float
    tried: int
    best: dict[str, tuple[float, float]] = field(default_factory=dict)


Progress = Callable[[Event], None]


@dataclass(frozen=True)
class TuneRow:
    """One matmul's outcome.

    stock: the static table's tile, None where it has none here or it was rejected (`stock_note` says why).
    tile: what the table now serves. ratio: stock seconds / chosen seconds, paired, with [low, high]; floor: the
    A/A floor; 1, [1, 1] where the stock stays. race: the final race behind them, which, where the stock
    stays, is that of the best challenger. share: of the tuned model's matmul time at this problem's m.
    paper_seconds: the chosen tile's price. expected_seconds: the price corrected by what was measured before the tile
    was, with the standard deviation of its logarithm; None where the tile was not screened in this run.
    """

    problem: Problem
    stock: str | None
    stock_seconds: float | None
    stock_note: str
    tile: str
    seconds: float
    ratio: float
    low: float
    high: float
    floor: float
    decision: Decision
    race: Race | None
    reuse: Reuse
    share: float = 0.0
    paper_seconds: float | None = None
    expected_seconds: float | None = None
    expected_deviation: float | None = None


@dataclass(frozen=True)
class ModelSum:
    """All matmuls of one pass over m tokens: seconds = sum of count * seconds; tokens/s = m / seconds.

    stock_seconds: the same with the stock tiles; None where one matmul has no stock time. missing: matmuls of the
    pass that no kernel serves, which the sum leaves out.
    """

    m: int
    seconds: float
    stock_seconds: float | None
    missing: int = 0

    @property
    def tokens_per_s(self) -> float:
        """m / seconds."""
        return self.m / self.seconds

    @property
    def stock_tokens_per_s(self) -> float | None:
        """m / stock_seconds."""
        return None if self.stock_seconds is None else self.m / self.stock_seconds


@dataclass(frozen=True)
class Hint:
    """What to run next: words after `warptile` on a command line, device and folders left out, and what they do."""

    words: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class TuneResult:
    """The end of a tune. unserved: (problem, reason) without a valid tile. hints: what to run next.

    tried, rejected: candidates compiled in this run, and those of them that were out. proving: seconds of it spent in
    proofs, compiling left out. recalled: verdicts and
    races taken from earlier runs. notes: what happened on the way that a person should know, one line each.
    """

    name: str
    source: str
    identity: Identity
    ms: tuple[int, ...]
    rows: tuple[TuneRow, ...]
    sums: tuple[ModelSum, ...]
    unserved: tuple[tuple[Problem, str], ...]
    unsupported: tuple[tuple[str, int, float], ...]
    table: Path
    journal: Path
    seconds: float
    tried: int
    rejected: int
    recalled: int
    notes: tuple[str, ...] = ()
    hints: tuple[Hint, ...] = ()
    proving: float = 0.0

    @property
    def rechecked(self) -> bool:
        """Whether every row was a re-check of what the table held."""
        return bool(self.rows) and all(row.reuse == "rechecked" for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Plain values; times in seconds."""
        value: dict[str, Any] = to_json(
            {**{name: getattr(self, name) for name in self.__dataclass_fields__}, "table": str(self.table)}
            | {"journal": str(self.journal), "rechecked": self.rechecked}
        )
        for plain, one in zip(value["sums"], self.sums, strict=True):
            plain["tokens_per_s"], plain["stock_tokens_per_s"] = one.tokens_per_s, one.stock_tokens_per_s
        return value


def model_sum(m: int, problems: Sequence[Problem], rows: dict[Problem, TuneRow]) -> ModelSum | None:
    """The sum over one pass's problems; None where none of them has a row. rows are keyed by problem with count 1."""
    served = [(p.count, rows[bare(p)]) for p in problems if bare(p) in rows]
    if not served:
        return None
    stock = [None if row.stock_seconds is None else count * row.stock_seconds for count, row in served]
    known = [s for s in stock if s is not None]
    return ModelSum(
        m,
        sum(count * row.seconds for count, row in served),
        sum(known) if len(known) == len(stock) else None,
        missing=sum(p.count for p in problems if bare(p) not in rows),
    )


def bare(problem: Problem) -> Problem:
    """The problem without its count: what is measured does not depend on how often a model asks."""
    return dataclasses.replace(problem, count=1)
