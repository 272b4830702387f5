"""Device code that packs file blocks into the quad arrangement."""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.decode import half_bits, held, load_scales, padded


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
    Source, Words, Tables, rows, first, row_bytes, span, spans, span_bytes,
    P: tl.constexpr, PLANES: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Some spans of one plane of ROWS rows from `first` on, by a `PlaneMap`.

    Source: file bytes of row `first`, as the map's numbers; row_bytes, span_bytes: of a row and a span, in numbers.
    span: the first of the spans; spans: of a row. P: where in PLANES the plane's constants (`repack._constants`) are.
    """
    AT: tl.constexpr = PLANES[P]
    ELEMENTS: tl.constexpr = PLANES[P + 1]
    PER: tl.constexpr = PLANES[P + 2]
    BITS: tl.constexpr = PLANES[P + 3]
    MOVES: tl.constexpr = PLANES[P + 4]
    PARTS: tl.constexpr = PLANES[P + 5]
    MASKED: tl.constexpr = PLANES[P + 6]
    FLIPPED: tl.constexpr = PLANES[P + 7]
    SPANS: tl.constexpr = PLANES[P + 8]
    EVEN: tl.constexpr = PLANES[P + 9]
    # A span's elements by rows and spans: what a lane knows of its element serves all rows and spans that it takes.
    # Elements are read instead of counted, so that Triton takes them for scattered and gives a lane one at a time: the
    # bytes of 32 neighbours share a line or two. Lanes that had four each would ask for eight lines at once.
    element = tl.load(Tables + tl.arange(0, ELEMENTS))
    own = tl.arange(0, ROWS * SPANS) % ROWS
    beyond = tl.arange(0, ROWS * SPANS) // ROWS
    # Rows past the last are read as the last and not stored.
    offset = tl.minimum(own, rows - 1 - first).to(tl.int64) * row_bytes + beyond * span_bytes
    Source += span * span_bytes.to(tl.int64)
    mask = (own < rows - first)[None, :]
    if not EVEN:
        mask = mask & (beyond < spans - span)[None, :]
    value = tl.zeros((ELEMENTS, ROWS * SPANS), tl.uint32)
    for j in tl.static_range(MOVES):
        move = tl.load(Tables + AT + j * ELEMENTS + element)
        at = (Source + (move & 0xFFFF))[:, None] + offset[None, :]
        if EVEN:
            found = tl.load(at).to(tl.uint32)
        else:
            found = tl.load(at, mask=(beyond < spans - span)[None, :], other=0).to(tl.uint32)
        found = turned(found, (move >> 16)[:, None])
        if MASKED:
            kept = tl.load(Tables + AT + (MOVES + j) * ELEMENTS + element).to(tl.uint32, bitcast=True)
            value = value | (found & kept[:, None])
        else:
            for part in tl.static_range(PARTS):
                value = with_part(
                    value, found, PLANES[P + 10 + 2 * (j * PARTS + part)], PLANES[P + 11 + 2 * (j * PARTS + part)]
                )
    if FLIPPED:
        flips = tl.load(Tables + AT + (MOVES + MASKED * MOVES) * ELEMENTS + element)
        value = value ^ flips.to(tl.uint32, bitcast=True)[:, None]
    laid = padded(rows).to(tl.int64)
    if BITS == 8:
        Out = Words.to(tl.pointer_type(tl.uint8))
    elif BITS == 16:
        Out = Words.to(tl.pointer_type(tl.uint16))
    else:
        Out = Words
    Out += (span * (ELEMENTS // PER) * laid + first) * PER
    unit = element // PER * laid * PER + element % PER
    put = (Out + unit)[:, None] + ((beyond * (ELEMENTS // PER) * laid + own) * PER)[None, :]
    if BITS == 32:
        tl.store(put, value.to(tl.int32, bitcast=True), mask=mask)
    else:
        tl.store(put, value.to(Out.dtype.element_ty), mask=mask)


@triton.jit
def signed_largest(W, s0, s1, row, at, rows, L: tl.constexpr):
    """The scale of kind k8 of largest absolute value in the step, fp32[R, 1, 1], up to its sign; and no minimum.

    Eight whole numbers share a factor: the largest is found before it is multiplied.
    """
    halves = W.to(tl.pointer_type(tl.uint16)) + s0.to(tl.int64) * 2
    d = tl.load(halves + (at // (L[8] // (32 * L[2]))).to(tl.int64) * padded(rows) + row).to(tl.int32)
    words = W + s1 + (at.to(tl.int64) * padded(rows) + row) * 2
    found = tl.load(words[:, None] + tl.arange(0, 2)[None, :])
    most = tl.abs(found >> 24)
    for byte in tl.static_range(3):
        most = tl.maximum(most, tl.abs((found << (24 - 8 * byte)) >> 24))
    return (half_bits(d) * tl.max(most, 1).to(tl.float32))[:, None, None], 0.0


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
    GROUPS: tl.constexpr = 1 if L[6] == "k8" else L[7]
    largest = tl.zeros((ROWS * STEPS, GROUPS), tl.int32)
    for i in tl.range(0, tl.cdiv(steps, STEPS)):
        # Past the last step the last is read again.
        at = tl.minimum(i * STEPS + pair % STEPS, steps - 1)
        if L[6] == "k8":
            scale, minimum = signed_largest(W, s0, s1, own, at, rows, L)
        else:
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
    Source, W, Tables, Out, rows, row_bytes, span_bytes, spans, steps, p0, p1, p2, p3, p4, p5, s0, s1, s2,
    PLANES: tl.constexpr, UNIT: tl.constexpr, L: tl.constexpr, ROWS: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """Every plane of `rows` rows from their file bytes. Grid (ceil(rows / ROWS),).

    row_bytes, span_bytes: of a row and a span, in numbers of UNIT bytes; spans: of a row. p0 .. p5: words where the
    planes start; Out: bytes of the row units' plane; s0, s1, s2, steps: as `row_exponents` has them. PLANES: how many
    planes there are, then where each one's constants start, then those (`repack._constants`).
    """
    first = tl.program_id(0) * ROWS
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
        for span in tl.range(0, spans, PLANES[PLANES[1 + i] + 8]):
            plane_moved(
                numbers, W + start, Tables, rows, first, row_bytes, span, spans, span_bytes, PLANES[1 + i], PLANES, ROWS
            )
    # The units come from scales that other threads of this program have stored.
    tl.debug_barrier()
    row_exponents(W, Out, rows, first, steps, s0, s1, s2, L, ROWS, STEPS)
