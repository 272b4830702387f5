"""Device code that packs file blocks into the quad arrangement."""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.decode import held, load_scales, padded


@triton.jit
def plane_moved(
    Source, Words, Tables, rows, row_bytes, span_bytes, row, span,
    AT: tl.constexpr, ELEMENTS: tl.constexpr, RUNS: tl.constexpr, PER: tl.constexpr, BITS: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """One plane of ROWS rows' span by a `PlaneMap` whose moves and then flips start at AT in Tables."""
    element = tl.arange(0, ELEMENTS)
    inside = row[:, None] < rows
    source = Source + row.to(tl.int64)[:, None] * row_bytes + span.to(tl.int64) * span_bytes
    value = tl.zeros((ROWS, ELEMENTS), tl.int32)
    for run in tl.static_range(RUNS):
        move = tl.load(Tables + AT + element * RUNS + run)[None, :]
        byte = tl.load(source + (move >> 16), mask=inside, other=0).to(tl.int32)
        kept = (1 << ((move >> 8) & 15)) - 1
        value = value | (((byte >> ((move >> 12) & 15)) & kept) << (move & 31))
    value = value ^ tl.load(Tables + AT + ELEMENTS * RUNS + element)[None, :]
    unit = span.to(tl.int64) * (ELEMENTS // PER) + element[None, :] // PER
    at = (unit * padded(rows) + row[:, None]) * PER + element[None, :] % PER
    if BITS == 8:
        tl.store(Words.to(tl.pointer_type(tl.uint8)) + at, value.to(tl.uint8), mask=inside)
    elif BITS == 16:
        tl.store(Words.to(tl.pointer_type(tl.uint16)) + at, value.to(tl.uint16), mask=inside)
    else:
        tl.store(Words + at, value, mask=inside)


@triton.jit
def move_bits(
    Source, W, Tables, rows, row_bytes, span_bytes, p0, p1, p2, p3, p4, p5, PLANES: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """Every plane of `rows` rows from their file bytes but the row units'. Grid (spans a row, ceil(rows / ROWS)).

    p0 .. p5: words where the planes start. PLANES: of each plane, one after another: where its table starts, elements
    of a span, runs of an element, elements of a unit, and bits of an element.
    """
    span = tl.program_id(0)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    for i in tl.static_range(len(PLANES) // 5):
        start = p0
        if i == 1:
            start = p1
        elif i == 2:
            start = p2
        elif i == 3:
            start = p3
        elif i == 4:
            start = p4
        elif i == 5:
            start = p5
        plane_moved(
            Source, W + start, Tables, rows, row_bytes, span_bytes, row, span,
            PLANES[5 * i], PLANES[5 * i + 1], PLANES[5 * i + 2], PLANES[5 * i + 3], PLANES[5 * i + 4], ROWS,
        )  # fmt: skip


@triton.jit
def row_exponents(
    W, Out, rows, steps, s0, s1, s2, L: tl.constexpr, ROWS: tl.constexpr, STEPS: tl.constexpr
):  # fmt: skip
    """The biased exponents of the rows' units (see `Arrangement`), u8[rows]. s0, s1, s2: the first scale planes'
    words; for a trit layout that holds its scale, s0 is the plane of the tail words. STEPS: read at a time."""
    pair = tl.arange(0, ROWS * STEPS)
    own = held(tl.program_id(0) * ROWS + pair // STEPS, rows)
    one = tl.full((ROWS * STEPS, 1, 1), 1.0, tl.float32)
    largest = tl.zeros((ROWS * STEPS,), tl.int32)
    for i in tl.range(0, tl.cdiv(steps, STEPS)):
        # Past the last step the last is read again.
        at = tl.minimum(i * STEPS + pair % STEPS, steps - 1)
        tail = tl.zeros((ROWS * STEPS, 1, 1), tl.int32)
        if L[6] == "inline":
            tail = tl.load(W + s0 + at.to(tl.int64) * padded(rows) + own)[:, None, None]
        scale, minimum = load_scales(W, s0, s1, s2, tail, own, at, rows, one, one, L)
        if L[16]:
            scale = tl.maximum(tl.abs(scale), tl.abs(minimum) * (1.0 / 16384.0))
        bits = scale.to(tl.int32, bitcast=True) & 0x7FFFFFFF
        largest = tl.maximum(largest, tl.max(tl.max(bits, 2), 1))
    most = tl.max(tl.reshape(largest, (ROWS, STEPS)), 1)
    biased = most >> 23
    kept = tl.minimum(tl.maximum(biased + 10, 35), 253)
    exponent = tl.where((most > 0) & (biased < 255), kept, 127)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    tl.store(Out + row, exponent.to(tl.uint8), mask=row < rows)
