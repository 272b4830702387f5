"""One run on a device: fresh guarded buffers, poisoned output, and everything the checks ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import (
    Binary,
    Buffer,
    Chosen,
    DeviceWeights,
    InstrumentedRuntime,
    Kernel,
    Problem,
    Runtime,
    Scratch,
    Tile,
    launches_of,
)
from warptile.contracts.runtime import all_ids
from warptile.contracts.samples import storage_dtype, stored, widened
from warptile.layouts import PackedWeights, piece_of
from warptile.proof.checks import Finding, faultless, guards_intact, launched, poisoned, unchanged, written

Real = NDArray[np.float32] | NDArray[np.float16]

POISONS = {"fp32": (0x7FA5A5A5, 0xFFC3C3C3), "fp16": (0x7D5A, 0xFEC3), "bf16": (0x7FA5, 0xFFC3)}
"""Bit patterns of NaNs, two a type: an element left alone shows the first in one run and the second in the other.

The first is a signalling NaN: what is computed from it is quiet, so a kernel that adds to y is told from one that
leaves it alone.
"""

POISON_READ_BYTES = 1 << 20
"""How much of an output is read back before the launch: one that was shared or not written differs from its start."""

SCRATCH_POISONS = (0x7FC1, 0xFFC3)
"""The same for scratch buffers, whose content has no one type: NaN as fp32 and as each fp16 half."""


@dataclass(frozen=True)
class ChosenRows:
    """Of a grouped matmul ids i32[m, top_k] and, where y is summed, weights f32[m, top_k]."""

    ids: NDArray[np.int32]
    weights: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Outcome:
    """What a run left: y[m, n] (bf16 widened to fp32), and the first finding of the checks that need no reference."""

    y: NDArray[Any]
    finding: Finding | None


def run(
    runtime: Runtime,
    kernel: Kernel,
    tile: Tile,
    problem: Problem,
    binary: Binary,
    x: Real,
    packed: PackedWeights,
    again: bool,
    chosen: ChosenRows | None = None,
    observed: int | None = None,
) -> Outcome:
    """Run once and ask "poisoned", "launch", "guards", "inputs" and "written", in that order.

    x[m, k], the weight slices and y[m, n] (of a grouped matmul ids and weights too) lie between guard bands; in the
    second run (`again`) each ends its allocation instead, and y is poisoned with another pattern. All these are fresh
    and freed afterwards. Scratch buffers are the runtime's: they are poisoned anew, and "guards" asks about theirs too.
    observed: the seed of a run of an instrumented binary, whose faults come first.
    """
    dtype = storage_dtype(problem.y_dtype)
    poison = POISONS[problem.y_dtype][again]
    blank = np.full((problem.y_rows, problem.n), poison, np.dtype(f"u{dtype.itemsize}"))
    given = stored(x, problem.x_dtype)
    buffers: list[Buffer] = []

    def place(data: NDArray[Any]) -> Buffer:
        buffer = runtime.guarded_buffer(data.nbytes, at_end=again)
        buffers.append(buffer)
        runtime.write(buffer, data)
        return buffer

    try:
        x_buffer, y_buffer = place(given), place(blank)
        pieces = tuple(piece_of(s, place(s.words)) for s in packed.slices)
        weights = DeviceWeights(packed.format.name, packed.layout.name, packed.n, packed.k, pieces, packed.experts)
        taken: dict[str, NDArray[Any]] = {} if chosen is None else {"ids": chosen.ids}
        if chosen is not None and chosen.weights is not None:
            taken["weights"] = chosen.weights
        held_by = {name: place(data) for name, data in taken.items()}
        rows = Chosen(held_by["ids"], held_by.get("weights")) if held_by else None
        launches = launches_of(kernel, binary, tile, problem, x_buffer, weights, y_buffer, rows)
        named = {"x": x_buffer, "y": y_buffer, **held_by} | {f"w[{i}]": p.buffer for i, p in enumerate(pieces)}
        for scratch in dict.fromkeys(b for launch in launches for b in launch.buffers if isinstance(b, Scratch)):
            held = named[f"scratch {scratch.name}"] = runtime.scratch_buffer(scratch)
            runtime.write(held, _scratch_poison(scratch.nbytes, again))
        seen = blank.reshape(-1)[: POISON_READ_BYTES // blank.itemsize]
        before = runtime.download(y_buffer, blank.dtype, seen.shape)
        faults: Finding | None = None
        if isinstance(runtime, InstrumentedRuntime):
            # Nothing clears shared memory: what the launch before left there is often right.
            runtime.poison_shared()
        if observed is None:
            runtime.execute(launches)
        else:
            assert isinstance(runtime, InstrumentedRuntime)
            faults = faultless(runtime.observe(launches, {y_buffer: dtype.itemsize}, observed))
        executed = runtime.executed_ids()
        intact = {name: runtime.guards_intact(buffer) for name, buffer in named.items()}
        after_x = runtime.download(x_buffer, given.dtype, given.shape)
        after_w = [
            runtime.download(p.buffer, s.words.dtype, s.words.shape) for p, s in zip(pieces, packed.slices, strict=True)
        ]
        after_taken = {name: runtime.download(held_by[name], data.dtype, data.shape) for name, data in taken.items()}
        y = runtime.download(y_buffer, dtype, (problem.y_rows, problem.n))
    finally:
        runtime.free(buffers)
    finding = (
        poisoned(before, poison)
        or faults
        or launched(executed, [launch.binary.id for launch in launches], binary.id, all_ids(binary))
        or guards_intact(intact)
        or unchanged("x", given, after_x)
        or next((f for name, data in taken.items() if (f := unchanged(name, data, after_taken[name]))), None)
        or next((f for s, w in zip(packed.slices, after_w, strict=True) if (f := unchanged("w", s.words, w))), None)
        or written(y, poison)
    )
    return Outcome(widened(y, problem.y_dtype), finding)


def repeat(
    runtime: Runtime,
    kernel: Kernel,
    tile: Tile,
    problem: Problem,
    binary: Binary,
    x: Real,
    packed: PackedWeights,
    times: int,
) -> list[NDArray[Any]]:
    """y[m, n] as stored, of `times` runs on the same buffers; outputs that equal the first are not kept twice."""
    dtype = storage_dtype(problem.y_dtype)
    buffers: list[Buffer] = []

    def place(data: NDArray[Any]) -> Buffer:
        buffers.append(runtime.upload(data))
        return buffers[-1]

    outputs: list[NDArray[Any]] = []
    try:
        x_buffer = place(stored(x, problem.x_dtype))
        y_buffer = place(np.zeros((problem.m, problem.n), dtype))
        pieces = tuple(piece_of(s, place(s.words)) for s in packed.slices)
        weights = DeviceWeights(packed.format.name, packed.layout.name, packed.n, packed.k, pieces)
        launches = kernel.launch(binary, tile, problem, x_buffer, weights, y_buffer)
        for _ in range(times):
            runtime.execute(launches)
            y = runtime.download(y_buffer, dtype, (problem.m, problem.n))
            same = bool(outputs) and y.tobytes() == outputs[0].tobytes()
            outputs.append(outputs[0] if same else y)
    finally:
        runtime.free(buffers)
    return outputs


def _scratch_poison(nbytes: int, again: bool) -> NDArray[np.uint8]:
    return np.resize(np.array([SCRATCH_POISONS[again]], "<u2").view(np.uint8), nbytes)
