"""What a journal's entries say, as typed values. `history` reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from warptile.contracts import (
    Ceilings,
    Decision,
    DeviceState,
    Identity,
    Limits,
    Price,
    Problem,
    Race,
    Resources,
    Verdict,
    Workload,
)
from warptile.journal.entries import Prediction


@dataclass(frozen=True)
class Noted:
    """Where and when an entry was written (`ref` is RUN:SEQ), and on which device."""

    ref: str
    time: str
    identity: Identity

    @property
    def run(self) -> str:
        """The run that wrote it."""
        return self.ref.rpartition(":")[0]


@dataclass(frozen=True)
class Timing(Noted):
    """One tile's measured seconds on a problem (count 1), beside its price.

    stage "screen": comparable with the timings of the same `ref` only, never evidence. Others: the median of one arm of
    a race. source: hash of the tile's source; price: as it was on paper then, None where none was written.
    """

    problem: Problem
    tile: str
    source: str
    seconds: float
    samples: int
    stage: str
    price: Price | None

    @property
    def kernel(self) -> str:
        """The kernel's full name."""
        return self.tile.partition(":")[0]


@dataclass(frozen=True)
class Raced(Noted):
    """A race with its samples; prices: on paper. hypothesis: the ref of what it answers."""

    stage: str
    race: Race
    price: Price | None
    price_incumbent: Price | None
    hypothesis: str | None
    state: DeviceState


@dataclass(frozen=True)
class Proved(Noted):
    """What the proof said of a tile. resources: the compiler's report, None where it gives none."""

    tile: str
    problem: Problem
    verdict: Verdict
    artefact: str
    compile_seconds: float
    price: Price | None
    resources: Resources | None
    verb: str


@dataclass(frozen=True)
class Refused(Noted):
    """A candidate that was out before a race: `outcome` is the error's word, `reason` its line."""

    tile: str
    problem: Problem
    outcome: str
    reason: str
    price: Price | None


@dataclass(frozen=True)
class Believed(Noted):
    """A hypothesis: that `arm` does to `control` what `predicted` says, and why. names: the arms' in a study."""

    problem: Problem
    control: str
    arm: str
    names: tuple[str, ...]
    because: str
    basis: str
    predicted: Prediction
    supersedes: str | None


@dataclass(frozen=True)
class Decided(Noted):
    """What the races of a problem concluded. hypothesis, races, supersedes: refs; older entries have none."""

    problem: Problem
    incumbent: str
    challenger: str
    decision: Decision
    hypothesis: str | None
    races: tuple[str, ...]
    supersedes: str | None
    layout: str


@dataclass(frozen=True)
class Kept(Noted):
    """A change of a table, `key` and `point` as the tables write them (point None: the key was forgotten)."""

    key: dict[str, Any]
    point: dict[str, Any] | None


@dataclass(frozen=True)
class Confirmed:
    """Whether a tuned model was still its file's model; facts: the confirmation as it was written."""

    ref: str
    time: str
    identity: Identity | None
    model: str
    right: bool
    failed: tuple[str, ...]
    facts: dict[str, Any]


@dataclass
class Run:
    """One run: what was asked, on what, and how it ended ("end", "interrupted", or "" where nothing says).

    facts: everything else its first entry holds (source, ms, seed, budget).
    """

    name: str
    time: str = ""
    verb: str = ""
    command: tuple[str, ...] = ()
    because: str = ""
    version: str = ""
    identity: Identity | None = None
    limits: Limits | None = None
    ceilings: Ceilings | None = None
    workload: Workload | None = None
    ended: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
