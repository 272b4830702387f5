"""Device code that packs file blocks into the quad arrangement."""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.decode import held, load_scales, padded


@triton.jit
def turned(value, turn):
    """u32 rotated to the left by `turn` bits."""
    turn = turn.to(tl.uint32)
    return (value << (turn & 31)) | (value >> ((32 - turn) & 31))


@triton.jit
def with_part(value, found, MASK: tl.constexpr, MORE: tl.constexpr):
    """value, and the bits MASK of `found` rotated to the left by MORE bits."""
    if MASK != 0:
        if MORE != 0:
            found = (found << MORE) | (found >> (32 - MORE))
        value = value | (found & MASK)
    return value


@triton.jit
def plane_moved(
    Source, Words, Tables, rows, k, first, own, offset, span, span_bytes,
    P: tl.constexpr, PLANES: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Some spans of one plane of ROWS rows from `first` on, by a `PlaneMap`.

    Source: file bytes of row `first`, as the map's numbers. own: i32[ROWS] rows from `first` on. offset: i32[ROWS] of
    each, in numbers. span: the first of the spans. P: where in PLANES the plane's constants (`repack._constants`) are.
    """
    AT: tl.constexpr = PLANES[P]
    ELEMENTS: tl.constexpr = PLANES[P + 1]
    PER: tl.constexpr = PLANES[P + 2]
    BITS: tl.constexpr = PLANES[P + 3]
    SPAN: tl.constexpr = PLANES[P + 4]
    MOVES: tl.constexpr = PLANES[P + 5]
    PARTS: tl.constexpr = PLANES[P + 6]
    MASKED: tl.constexpr = PLANES[P + 7]
    FLIPPED: tl.constexpr = PLANES[P + 8]
    SPANS: tl.constexpr = PLANES[P + 9]
    EVEN: tl.constexpr = PLANES[P + 10]
    # Read instead of counted, so that Triton takes elements for scattered and gives a lane one at a time: the bytes of
    # 32 neighbours share a line or two. Lanes that had four each would ask for eight lines at once.
    element = tl.load(Tables + tl.arange(0, ELEMENTS * SPANS))
    own_element = element % ELEMENTS
    moved = (element // ELEMENTS + span) * span_bytes
    unit = span * (ELEMENTS // PER) + element // PER
    inside = unit < k // SPAN
    # Elements come first, so that Triton gives neighbouring lanes neighbouring elements of a row, which share a line.
    value = tl.zeros((ELEMENTS * SPANS, ROWS), tl.uint32)
    for j in tl.static_range(MOVES):
        move = tl.load(Tables + AT + j * ELEMENTS + own_element)
        at = (moved + (move & 0xFFFF))[:, None] + offset[None, :]
        if EVEN:
            found = tl.load(Source + at).to(tl.uint32)
        else:
            found = tl.load(Source + at, mask=inside[:, None], other=0).to(tl.uint32)
        found = turned(found, (move >> 16)[:, None])
        if MASKED:
            mask = tl.load(Tables + AT + (MOVES + j) * ELEMENTS + own_element).to(tl.uint32, bitcast=True)
            value = value | (found & mask[:, None])
        else:
            for part in tl.static_range(PARTS):
                value = with_part(
                    value, found, PLANES[P + 11 + 2 * (j * PARTS + part)], PLANES[P + 12 + 2 * (j * PARTS + part)]
                )
    if FLIPPED:
        flips = tl.load(Tables + AT + (MOVES + MASKED * MOVES) * ELEMENTS + own_element)
        value = value ^ flips.to(tl.uint32, bitcast=True)[:, None]
    start = (unit.to(tl.int64) * padded(rows) + first) * PER + element % PER
    put = start[:, None] + (own * PER)[None, :]
    mask = (own < rows - first)[None, :]
    if not EVEN:
        mask = mask & inside[:, None]
    if BITS == 8:
        tl.store(Words.to(tl.pointer_type(tl.uint8)) + put, value.to(tl.uint8), mask=mask)
    elif BITS == 16:
        tl.store(Words.to(tl.pointer_type(tl.uint16)) + put, value.to(tl.uint16), mask=mask)
    else:
        tl.store(Words + put, value.to(tl.int32, bitcast=True), mask=mask)


@triton.jit
def row_exponents(
    W, Out, rows, first, steps, s0, s1, s2, L: tl.constexpr, ROWS: tl.constexpr, STEPS: tl.constexpr
):  # fmt: skip
    """The biased exponents of the units of ROWS rows from `first` on (see `Arrangement`), u8[rows].

    s0, s1, s2: the first scale planes' words; for a trit layout that holds its scale, s0 is the plane of tail words.
    STEPS: read at a time.
    """
    pair = tl.arange(0, ROWS * STEPS)
    own = held(first + pair // STEPS, rows)
    one = tl.full((ROWS * STEPS, 1, 1), 1.0, tl.float32)
    GROUPS: tl.constexpr = L[7]
    largest = tl.zeros((ROWS * STEPS, GROUPS), tl.int32)
    for i in tl.range(0, tl.cdiv(steps, STEPS)):
        # Past the last step the last is read again.
        at = tl.minimum(i * STEPS + pair % STEPS, steps - 1)
        tail = tl.zeros((ROWS * STEPS, 1, 1), tl.int32)
        if L[6] == "inline":
            tail = tl.load(W + s0 + at.to(tl.int64) * padded(rows) + own)[:, None, None]
        scale, minimum = load_scales(W, s0, s1, s2, tail, own, at, rows, one, one, L)
        # Compared as whole numbers, in which what is no number is largest.
        bits = scale.to(tl.int32, bitcast=True) & 0x7FFFFFFF
        if L[16]:
            minimum = minimum * (1.0 / 16384.0)
            bits = tl.maximum(bits, minimum.to(tl.int32, bitcast=True) & 0x7FFFFFFF)
        largest = tl.maximum(largest, tl.max(bits, 1))
    most = tl.max(tl.reshape(tl.max(largest, 1), (ROWS, STEPS)), 1)
    biased = most >> 23
    kept = tl.minimum(tl.maximum(biased + 10, 35), 253)
    exponent = tl.where((most > 0) & (biased < 255), kept, 127)
    row = first + tl.arange(0, ROWS)
    tl.store(Out + row, exponent.to(tl.uint8), mask=row < rows)


@triton.jit
def move_rows(
    Source, W, Tables, Out, rows, k, row_bytes, span_bytes, spans, steps, p0, p1, p2, p3, p4, p5, s0, s1, s2,
    PLANES: tl.constexpr, UNIT: tl.constexpr, L: tl.constexpr, ROWS: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """Every plane of `rows` rows of k elements from their file bytes. Grid (ceil(rows / ROWS),).

    row_bytes, span_bytes: of a row and a span, in numbers of UNIT bytes; spans: of a row. p0 .. p5: words where the
    planes start; Out: bytes of the row units' plane; s0, s1, s2, steps: as `row_exponents` has them. PLANES: how many
    planes there are, then where each one's constants start, then those (`repack._constants`).
    """
    first = tl.program_id(0) * ROWS
    own = tl.arange(0, ROWS)
    # Rows past the last are read as the last and not stored.
    offset = tl.minimum(own, rows - 1 - first) * row_bytes
    if UNIT == 2:
        numbers = Source.to(tl.pointer_type(tl.uint16)) + first.to(tl.int64) * row_bytes
    else:
        numbers = Source + first.to(tl.int64) * row_bytes
    COUNT: tl.constexpr = PLANES[0]
    # Plane by plane, each in turns of about as many elements: what a row's second plane reads is still in the cache.
    for i in tl.static_range(COUNT):
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
        for span in tl.range(0, spans, PLANES[PLANES[1 + i] + 9]):
            plane_moved(
                numbers, W + start, Tables, rows, k, first, own, offset, span, span_bytes, PLANES[1 + i], PLANES, ROWS
            )
    # The units come from scales that other threads of this program have stored.
    tl.debug_barrier()
    row_exponents(W, Out, rows, first, steps, s0, s1, s2, L, ROWS, STEPS)
