"""One run on a device: fresh guarded buffers, poisoned output, and everything the checks ask for."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
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
    Launch,
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

_SHARED = re.compile(r"^\s*shared\b", re.MULTILINE)

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
    with _placed(runtime, kernel, tile, problem, binary, x, packed, again, chosen) as placed:
        _poison_shared(runtime, binary)
        faults: Finding | None = None
        if observed is None:
            runtime.execute(placed.launches)
        else:
            assert isinstance(runtime, InstrumentedRuntime)
            size = storage_dtype(problem.y_dtype).itemsize
            faults = faultless(runtime.observe(placed.launches, {placed.y: size}, observed))
        return placed.outcome(runtime, runtime.executed_ids(), faults)


@dataclass(frozen=True)
class _Placed:
    """Launches of one run, with what was placed for them. inputs: by name, what was uploaded and where."""

    launches: tuple[Launch, ...]
    binary: Binary
    y: Buffer
    y_dtype: str
    shape: tuple[int, int]
    poison: int
    before: NDArray[Any]
    inputs: Mapping[str, tuple[NDArray[Any], Buffer]]
    named: Mapping[str, Buffer]

    def outcome(self, runtime: Runtime, executed: Sequence[int], faults: Finding | None = None) -> Outcome:
        """What the launches left, after they ran."""
        intact = {name: runtime.guards_intact(buffer) for name, buffer in self.named.items()}
        after = {name: runtime.download(held, was.dtype, was.shape) for name, (was, held) in self.inputs.items()}
        y = runtime.download(self.y, storage_dtype(self.y_dtype), self.shape)
        finding = (
            poisoned(self.before, self.poison)
            or faults
            or launched(executed, [one.binary.id for one in self.launches], self.binary.id, all_ids(self.binary))
            or guards_intact(intact)
            or next((f for name, (was, _) in self.inputs.items() if (f := unchanged(name, was, after[name]))), None)
            or written(y, self.poison)
        )
        return Outcome(widened(y, self.y_dtype), finding)


@contextlib.contextmanager
def _placed(
    runtime: Runtime,
    kernel: Kernel,
    tile: Tile,
    problem: Problem,
    binary: Binary,
    x: Real,
    packed: PackedWeights,
    again: bool,
    chosen: ChosenRows | None = None,
) -> Iterator[_Placed]:
    """Everything of a run on the device, poisoned as `run` says; freed at the end."""
    dtype = storage_dtype(problem.y_dtype)
    poison = POISONS[problem.y_dtype][again]
    blank = np.full((problem.y_rows, problem.n), poison, np.dtype(f"u{dtype.itemsize}"))
    buffers: list[Buffer] = []

    def place(data: NDArray[Any]) -> Buffer:
        buffer = runtime.guarded_buffer(data.nbytes, at_end=again)
        buffers.append(buffer)
        runtime.write(buffer, data)
        return buffer

    try:
        given = {"x": stored(x, problem.x_dtype)}
        if chosen is not None:
            given["ids"] = chosen.ids
            if chosen.weights is not None:
                given["weights"] = chosen.weights
        held = {name: place(data) for name, data in given.items()}
        y = place(blank)
        pieces = tuple(piece_of(s, place(s.words)) for s in packed.slices)
        weights = DeviceWeights(packed.format.name, packed.layout.name, packed.n, packed.k, pieces, packed.experts)
        rows = None if chosen is None else Chosen(held["ids"], held.get("weights"))
        launches = launches_of(kernel, binary, tile, problem, held["x"], weights, y, rows)
        inputs = {name: (data, held[name]) for name, data in given.items()}
        inputs |= {
            f"w[{i}]": (s.words, piece.buffer) for i, (s, piece) in enumerate(zip(packed.slices, pieces, strict=True))
        }
        named = {"y": y} | {name: buffer for name, (_, buffer) in inputs.items()}
        for scratch in dict.fromkeys(b for launch in launches for b in launch.buffers if isinstance(b, Scratch)):
            own = named[f"scratch {scratch.name}"] = runtime.scratch_buffer(scratch)
            runtime.write(own, _scratch_poison(scratch.nbytes, again))
        seen = blank.reshape(-1)[: POISON_READ_BYTES // blank.itemsize]
        before = runtime.download(y, blank.dtype, seen.shape)
        shape = (problem.y_rows, problem.n)
        yield _Placed(launches, binary, y, problem.y_dtype, shape, poison, before, inputs, named)
    finally:
        runtime.free(buffers)


def _poison_shared(runtime: Runtime, binary: Binary) -> None:
    """Leave NaN in shared memory, which nothing clears: what the launch before left there is often right."""
    poison_shared = getattr(runtime, "poison_shared", None)
    if poison_shared is not None and _shares(binary):
        poison_shared()


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


def _shares(binary: Binary) -> bool:
    """Whether the kernel, or a helper, has shared memory: a launch that poisons it costs as much as a small run."""
    return _SHARED.search(binary.source.text) is not None or any(_shares(helper) for helper in binary.helpers)


def _scratch_poison(nbytes: int, again: bool) -> NDArray[np.uint8]:
    return np.resize(np.array([SCRATCH_POISONS[again]], "<u2").view(np.uint8), nbytes)
