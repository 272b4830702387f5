"""A test stand: one device behind its worker process, and the steps that need it.

The loop calls these and nothing else of a device, so that it names no runtime and runs against a fake in tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from warptile.contracts import Ceilings, Identity, Limits, Problem, Race, Resources, Verdict
from warptile.race import Screening


@dataclass(frozen=True)
class Proof:
    """A verdict and the binary it is about. artefact: `Binary.key`; compile_seconds: what compiling took.

    resources: what the driver's compiler reports of the binary; None where it says nothing. seconds: what proving took
    beside compiling.
    """

    verdict: Verdict
    artefact: str
    compile_seconds: float
    resources: Resources | None = None
    seconds: float = 0.0


class Stand(Protocol):
    """One device. A step raises a `CandidateRejected` where a candidate is at fault; the stand lives on.

    Tiles are given by their text form. `proved` holds the id of every raced tile's proved binary, by text form.
    deadline: seconds after which the step is ended with `Timeout`.
    """

    def describe(self) -> tuple[Limits, Identity]:
        """Limits and identity of the open device."""
        ...

    def ceilings(self) -> Ceilings:
        """Measured read bytes/s, FLOP/s and empty launch."""
        ...

    def ahead(self, wanted: Sequence[tuple[str, Problem]], deadline: float) -> int:
        """Compile tiles that come next side by side, where the runtime can; failures show when they are used.

        How many the stand compiles at once, 1 where it cannot.
        """
        ...

    def prove(self, tile: str, problems: Sequence[Problem], seed: int, deadline: float) -> Proof:
        """Whether the tile's binary is right on every k of `problems`, which share one binary."""
        ...

    def watch(self, tile: str, problem: Problem, seed: int, deadline: float) -> None:
        """Run instrumented builds of a tile, where the runtime has any. Raises Wrong where they find a fault."""
        ...

    def screen(
        self,
        problem: Problem,
        proved: Mapping[str, int],
        seconds: float,
        seed: int,
        deadline: float,
        thorough: bool = False,
    ) -> Screening:
        """Which tiles are worth a race, or a proof first, in about `seconds`; an id is 0 where a tile is not proved.

        thorough: which one is the fastest.
        """
        ...

    def race(
        self,
        problem: Problem,
        incumbent: str,
        challenger: str,
        proved: Mapping[str, int],
        seconds: float,
        rounds: int,
        seed: int,
        deadline: float,
        fresh: bool = False,
        most_rounds: int = 0,
    ) -> Race:
        """A paired race of at most `rounds` rounds and about `seconds`; fresh: with everything uploaded anew.

        most_rounds: where it is more than `rounds`, the race goes on until it is settled, or so long.
        """
        ...

    def close(self) -> None:
        """End the worker and give the device back."""
        ...


@runtime_checkable
class Named(Protocol):
    """A stand whose device's driver knows it by a UUID."""

    def uuid(self) -> str:
        """The UUID, "" where the runtime does not say."""
        ...
