"""Device code that packs file blocks into the quad arrangement."""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.decode import held, load_scales, padded


@triton.jit
def move_bits(
    Source, Plane, Moves, Flips, rows, row_bytes, span_bytes, units,
    ELEMENTS: tl.constexpr, RUNS: tl.constexpr, PER: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """One plane of `rows` rows from their file bytes, by a `PlaneMap`. Grid (spans a row, ceil(rows / ROWS)).

    units: units of the plane in a span; ELEMENTS = units * PER.
    """
    span = tl.program_id(0)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    element = tl.arange(0, ELEMENTS)
    inside = row[:, None] < rows
    source = Source + row.to(tl.int64)[:, None] * row_bytes + span.to(tl.int64) * span_bytes
    value = tl.zeros((ROWS, ELEMENTS), tl.int32)
    for run in tl.static_range(RUNS):
        move = tl.load(Moves + element * RUNS + run)[None, :]
        byte = tl.load(source + (move >> 16), mask=inside, other=0).to(tl.int32)
        kept = (1 << ((move >> 8) & 15)) - 1
        value = value | (((byte >> ((move >> 12) & 15)) & kept) << (move & 31))
    value = value ^ tl.load(Flips + element)[None, :]
    unit = span.to(tl.int64) * units + element[None, :] // PER
    at = (unit * padded(rows) + row[:, None]) * PER + element[None, :] % PER
    tl.store(Plane + at, value.to(Plane.dtype.element_ty), mask=inside)


@triton.jit
def row_exponents(W, Out, rows, steps, s0, s1, s2, L: tl.constexpr, ROWS: tl.constexpr):
    """The biased exponents of the rows' units (see `Arrangement`), u8[rows]. s0, s1, s2: the first scale planes'
    words; for a trit layout that holds its scale, s0 is the plane of the tail words."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    own = held(row, rows)
    one = tl.full((ROWS, 1, 1), 1.0, tl.float32)
    largest = tl.zeros((ROWS,), tl.int32)
    zero = tl.full([], 0, tl.int32)
    for i in tl.range(0, steps):
        at = zero + i
        tail = tl.zeros((ROWS, 1, 1), tl.int32)
        if L[6] == "inline":
            tail = tl.load(W + s0 + at.to(tl.int64) * padded(rows) + own)[:, None, None]
        scale, minimum = load_scales(W, s0, s1, s2, tail, own, at, rows, one, one, L)
        if L[16]:
            scale = tl.maximum(tl.abs(scale), tl.abs(minimum) * (1.0 / 16384.0))
        bits = scale.to(tl.int32, bitcast=True) & 0x7FFFFFFF
        largest = tl.maximum(largest, tl.max(tl.max(bits, 2), 1))
    biased = largest >> 23
    kept = tl.minimum(tl.maximum(biased + 10, 35), 253)
    exponent = tl.where((largest > 0) & (biased < 255), kept, 127)
    tl.store(Out + row, exponent.to(tl.uint8), mask=row < rows)
