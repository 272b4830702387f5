"""What a tile costs: on paper, and by the compiler."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Price:
    """A tile's cost on paper. A price is never a measurement and never printed as one.

    accumulators: fp32 accumulators a thread. registers: estimated 32-bit registers a thread.
    shared_bytes: exact, a workgroup. resident_threads: threads one unit holds at once, cut to whole
    workgroups; limited_by: "registers", "shared memory", "threads", "workgroups" or "unknown".
    barriers: workgroup barriers a K-step. intensity: FLOP per byte moved from global memory.
    workgroups: how many the launch has. fill: share of the last wave of workgroups that is busy, 0..1.
    seconds: roofline estimate with the above folded in; comparable only within one device and problem.
    spills: whether the paper rule expects the tile to spill. notes: reasons in words, one line each.
    """

    accumulators: int
    registers: int
    shared_bytes: int
    resident_threads: int
    limited_by: str
    barriers: int
    intensity: float
    workgroups: int
    fill: float
    seconds: float
    spills: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Resources:
    """What the driver's compiler reports for a binary; None where it does not say.

    raw: the driver's own statistics, untouched (name, value).
    """

    registers: int | None = None
    spilled_registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    scratch_bytes: int | None = None
    subgroup: int | None = None
    code_bytes: int | None = None
    raw: tuple[tuple[str, float], ...] = ()
