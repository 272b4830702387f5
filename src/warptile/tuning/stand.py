"""A test stand: one device behind its worker process, and the steps that need it.

The loop calls these and nothing else of a device, so that it names no runtime and runs against a fake in tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

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

    def ahead(self, wanted: Sequence[tuple[str, Problem]], deadline: float) -> None:
        """Compile tiles that will be proved next side by side, where the runtime can; failures show in the proofs."""
        ...

    def prove(self, tile: str, problems: Sequence[Problem], seed: int, deadline: float) -> Proof:
        """Whether the tile's binary is right on every k of `problems`, which share one binary."""
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
        """Which of the proved tiles are worth a race, in about `seconds`; thorough: which one is the fastest."""
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
