"""What an instrumented build reports when it has run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from warptile.contracts.launch import Launch
from warptile.contracts.runtime import Buffer, Instrument, Runtime

FAULT_KINDS = ("launch", "outside", "barrier", "race", "uninitialised", "once")


@dataclass(frozen=True)
class Fault:
    """One thing that an instrumented launch did wrong.

    kind: "launch" (not all of the binary's workgroups ran to their end, or another binary did), "outside" (an access
    beyond a buffer's true extent or a shared array; it was left out), "barrier" (invocations of a workgroup passed
    different numbers of its barriers: some devices wait for ever then), "race" (two invocations of a workgroup on one
    word of shared memory, one of them writing, with no barrier between), "uninitialised" (shared memory read that
    nobody wrote), "once" (an element of an output written twice, or never).
    text: one line with everything. line: in the kernel's translation unit, 0 where none is known. index: the element
    touched. extent: of the buffer in bytes, or elements of the shared array.
    """

    kind: str
    text: str
    line: int = 0
    workgroup: tuple[int, int, int] = (0, 0, 0)
    invocation: int = 0
    index: int = 0
    extent: int = 0


@dataclass(frozen=True)
class Observation:
    """faults: one for each kind and source line, those of `FAULT_KINDS` in order. count: invocations that found any."""

    faults: tuple[Fault, ...]
    count: int = 0


@runtime_checkable
class InstrumentedRuntime(Runtime, Protocol):
    """A runtime whose `compile` knows instruments beside "none"."""

    @property
    def instruments(self) -> frozenset[Instrument]:
        """Those it knows."""
        ...

    def observe(self, launches: Sequence[Launch], once: Mapping[Buffer, int], seed: int = 0) -> Observation:
        """As `execute`, of binaries compiled with an instrument, and what they report.

        once: buffers of which every element (so many bytes) must be written once by all launches together; a
        "checked" build counts. seed: of a "delayed" build's delays and order of workgroups. Raises DoesNotFit where
        what the instrument notes is larger than a buffer of the device may be.
        """
        ...

    def poison_shared(self) -> None:
        """Leave NaN in the device's shared memory, as far as the device keeps it from one launch to the next."""
        ...
