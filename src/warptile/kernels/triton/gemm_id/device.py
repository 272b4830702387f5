"""Device code of `triton.gemm_id`: each row of x times the weights of the expert it goes to.

A slot is one (token, expert taken): slot = token * top_k + j. An id outside 0 .. experts - 1 counts as the expert
number `experts`, which has no weights: its slots come last, and their rows of y are 0.
"""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.kernels.triton.gemm.device import drained
from warptile.layouts.triton.decode import decode_plain, held, in_order, load_unit, unit_factors
from warptile.layouts.triton.half_decode import decode_half


@triton.jit
def bucket_of(Ids, slot, slots, experts):
    """The expert of each slot, i32: `experts` for an id that names none, experts + 1 past the last slot."""
    id = tl.load(Ids + slot, mask=slot < slots, other=0)
    inside = (id >= 0) & (id < experts)
    return tl.where(slot < slots, tl.where(inside, id, experts), experts + 1)


@triton.jit
def count_slots(Ids, Counts, slots, experts, CHUNK: tl.constexpr, BUCKETS: tl.constexpr, BUILD_ID: tl.constexpr):
    """Counts i32[chunks, BUCKETS]: slots of each chunk of CHUNK slots that go to each expert. Grid (chunks,)."""
    chunk = tl.program_id(0)
    bucket = bucket_of(Ids, chunk * CHUNK + tl.arange(0, CHUNK), slots, experts)
    tl.store(Counts + chunk * BUCKETS + tl.arange(0, BUCKETS), tl.histogram(bucket, BUCKETS))


@triton.jit
def place_slots(
    Ids, Counts, Order, Work, slots, experts, chunks, most_tiles,
    TILE_M: tl.constexpr, CHUNK: tl.constexpr, BUCKETS: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr,
    ENTRIES: tl.constexpr, BUILD_ID: tl.constexpr,
):  # fmt: skip
    """Order i32[slots]: slots by expert, in their own order; Work i32[most_tiles, 4]: (expert, first, rows, 0) of each
    tile of at most TILE_M places of Order, by expert; rows 0 past the last tile. Grid (chunks,).

    A counting sort: the slot's place is the count of all slots of lower experts, of its expert in earlier chunks, and
    of its expert before it in its own chunk.
    """
    chunk = tl.program_id(0)
    axis = tl.arange(0, BUCKETS)
    total = tl.zeros((BUCKETS,), tl.int32)
    before = tl.zeros((BUCKETS,), tl.int32)
    for first in tl.range(0, chunks, ROWS):
        row = first + tl.arange(0, ROWS)[:, None]
        found = tl.load(Counts + row * BUCKETS + axis[None, :], mask=row < chunks, other=0)
        total += tl.sum(found, 0)
        before += tl.sum(tl.where(row < chunk, found, 0), 0)
    total = tl.where(axis <= experts, total, 0)
    start = tl.cumsum(total, 0) - total
    own = tl.arange(0, CHUNK)
    slot = chunk * CHUNK + own
    bucket = bucket_of(Ids, slot, slots, experts)
    place = tl.gather(start + before, tl.minimum(bucket, BUCKETS - 1), 0)
    for first in tl.range(0, CHUNK, PART):
        other = first + tl.arange(0, PART)
        same = bucket[:, None] == bucket_of(Ids, chunk * CHUNK + other, slots, experts)[None, :]
        place += tl.sum((same & (other[None, :] < own[:, None])).to(tl.int32), 1)
    tl.store(Order + place, slot, mask=slot < slots)
    tiles = (total + TILE_M - 1) // TILE_M
    end = tl.cumsum(tiles, 0)
    for first in tl.range(chunk * ENTRIES, most_tiles, chunks * ENTRIES):
        tile = first + tl.arange(0, ENTRIES)
        expert = tl.sum((end[None, :] <= tile[:, None]).to(tl.int32), 1)
        own_expert = tl.minimum(expert, BUCKETS - 1)
        inner = (tile - tl.gather(end - tiles, own_expert, 0)) * TILE_M
        rows = tl.minimum(tl.gather(total, own_expert, 0) - inner, TILE_M)
        live = expert < BUCKETS
        entry, kept = Work + tile * 4, tile < most_tiles
        tl.store(entry, expert, mask=kept)
        tl.store(entry + 1, tl.where(live, tl.gather(start, own_expert, 0) + inner, 0), mask=kept)
        tl.store(entry + 2, tl.where(live, rows, 0), mask=kept)


@triton.jit
def multiplied(w, x, acc, OPERAND: tl.constexpr):
    """acc + w x, [.., n, k] times [.., k, m]; OPERAND: as in `triton.gemm`."""
    if OPERAND == "fp16":
        acc = tl.dot(w.to(tl.float16), x.to(tl.float16), acc)
    elif OPERAND == "bf16":
        acc = tl.dot(w.to(tl.bfloat16), x.to(tl.bfloat16), acc)
    elif OPERAND == "widened bf16":
        acc = tl.dot(w.to(tl.bfloat16).to(tl.float32), x.to(tl.bfloat16).to(tl.float32), acc)
    else:
        acc = tl.dot(w.to(tl.float32), x.to(tl.float32), acc, input_precision=OPERAND)
    return acc


@triton.jit
def some_tiles(
    X, W, Y, Order, expert, start, count, rows, k, first_n, end_n, x_stride, y_stride, p0, p1, p2, p3, p4, p5, unit,
    experts, x_share, L: tl.constexpr, TILE_N: tl.constexpr, TILE_M: tl.constexpr, OPERAND: tl.constexpr,
    DECODE: tl.constexpr, DRAIN: tl.constexpr,
):  # fmt: skip
    """Rows of y of the slots Order[start .. start + count), against row tiles first_n .. end_n of the expert that W
    points to."""
    STEP: tl.constexpr = 32 * L[2]
    place = tl.arange(0, TILE_M)
    slot = tl.load(Order + start + tl.minimum(place, count - 1))
    x_row = X + (slot // x_share).to(tl.int64)[:, None] * x_stride + tl.arange(0, STEP)[None, :]
    y_row = Y + slot.to(tl.int64)[:, None] * y_stride
    steps = k // STEP
    tl.assume(steps > 0)
    # The interpreter's loop counts in Python's integers.
    zero = tl.full([], 0, tl.int32)
    for at_n in tl.range(first_n, end_n):
        row = at_n * TILE_N + tl.arange(0, TILE_N)
        own_row = held(row, rows)
        acc = tl.zeros((TILE_N, TILE_M), tl.float32)
        if expert < experts:
            exponent = load_unit(W, unit, row, rows)
            up, down = unit_factors(exponent, L)
            for i in tl.range(0, steps):
                at = zero + i
                x = tl.load(x_row + at * STEP)
                if DECODE == "plain":
                    value = decode_plain(W, p0, p1, p2, p3, p4, p5, own_row, at, rows, TILE_N, L)
                else:
                    value = decode_half(
                        W, p0, p1, p2, p3, p4, p5, own_row, at, rows, up, down, TILE_N, L, DECODE == "ptx"
                    )  # fmt: skip
                acc = multiplied(in_order(value, TILE_N, L), tl.trans(x), acc, OPERAND)
                if DRAIN:
                    acc = drained(acc)
            if DECODE != "plain":
                acc = acc * (exponent << 23).to(tl.float32, bitcast=True)[:, None]
        inside = (place[:, None] < count) & (row[None, :] < rows)
        tl.store(y_row + row[None, :], tl.trans(acc).to(Y.dtype.element_ty), mask=inside)


@triton.jit
def gemm_sorted(
    X, W, Y, Order, Work, Executed, m, rows, k, row0, x_stride, y_stride, p0, p1, p2, p3, p4, p5, unit,
    experts, stride, x_share, L: tl.constexpr, TILE_N: tl.constexpr, TILE_M: tl.constexpr, TAIL: tl.constexpr,
    SPAN: tl.constexpr, OPERAND: tl.constexpr, DECODE: tl.constexpr, DRAIN: tl.constexpr, BUILD_ID: tl.constexpr,
):  # fmt: skip
    """y[slot, r] = sum_k x[slot / x_share, k] w[expert of slot, r, k], tile by tile of `place_slots`' work.

    Grid: groups of SPAN tiles along n * the most tiles that the slots can make; those past the last tile end at once. A
    tile of at most TAIL rows (0: none) is computed as one of TAIL. stride: words from one expert's weights to the next.
    """
    program = tl.program_id(0)
    if program == 0:
        tl.store(Executed, tl.full([], BUILD_ID, tl.uint32))
    tiles_n = tl.cdiv(rows, TILE_N)
    spans = tl.cdiv(tiles_n, SPAN)
    entry = Work + program // spans * 4
    # All at once: what follows waits for memory one time less.
    expert = tl.load(entry)
    start = tl.load(entry + 1)
    count = tl.load(entry + 2)
    if count > 0:
        first_n = program % spans * SPAN
        end_n = tl.minimum(first_n + SPAN, tiles_n)
        own = W + tl.minimum(expert, experts - 1).to(tl.int64) * stride
        if TAIL > 0:
            if count <= TAIL:
                some_tiles(
                    X, own, Y, Order, expert, start, count, rows, k, first_n, end_n, x_stride, y_stride,
                    p0, p1, p2, p3, p4, p5, unit, experts, x_share, L, TILE_N, TAIL, OPERAND, DECODE, DRAIN,
                )  # fmt: skip
            else:
                some_tiles(
                    X, own, Y, Order, expert, start, count, rows, k, first_n, end_n, x_stride, y_stride,
                    p0, p1, p2, p3, p4, p5, unit, experts, x_share, L, TILE_N, TILE_M, OPERAND, DECODE, DRAIN,
                )  # fmt: skip
        else:
            some_tiles(
                X, own, Y, Order, expert, start, count, rows, k, first_n, end_n, x_stride, y_stride,
                p0, p1, p2, p3, p4, p5, unit, experts, x_share, L, TILE_N, TILE_M, OPERAND, DECODE, DRAIN,
            )  # fmt: skip


@triton.jit
def gemm_slots(
    X, W, Y, Ids, Weights, Executed, m, rows, k, row0, x_stride, y_stride, p0, p1, p2, p3, p4, p5, unit,
    experts, stride, x_share, top_k, L: tl.constexpr, TILE_N: tl.constexpr, TILE_M: tl.constexpr, STEPS: tl.constexpr,
    SLOTS: tl.constexpr, OPERAND: tl.constexpr, DECODE: tl.constexpr, STAGES: tl.constexpr, BUILD_ID: tl.constexpr,
):  # fmt: skip
    """As `gemm_sorted`, rows alone, which need no order: a row of y and TILE_N rows of weights a program.

    The product is a batch of SLOTS * STEPS: STEPS parts of k by different warps, of one slot (SLOTS 0), or of all slots
    of a token, at most SLOTS, whose sums are multiplied by their weights and added. A slot's row of x is the first of
    TILE_M, which the matrix unit takes at least. Grid (tiles along n, rows of y).
    """
    STEP: tl.constexpr = 32 * L[2]
    BATCH: tl.constexpr = SLOTS * STEPS if SLOTS > 0 else STEPS
    R: tl.constexpr = BATCH * TILE_N
    at_n = tl.program_id(0)
    y_row = tl.program_id(1)
    flat = tl.arange(0, R)
    row = at_n * TILE_N + flat % TILE_N
    batch = tl.arange(0, BATCH)
    if SLOTS > 0:
        slot = y_row * top_k + tl.minimum(batch // STEPS, top_k - 1)
        row_expert = tl.load(Ids + y_row * top_k + tl.minimum(flat // (TILE_N * STEPS), top_k - 1))
        expert = tl.load(Ids + slot)
        named = (expert >= 0) & (expert < experts) & (batch // STEPS < top_k)
    else:
        slot = y_row + batch * 0
        row_expert = tl.load(Ids + y_row)
        named = (row_expert >= 0) & (row_expert < experts) & (batch >= 0)
    own = W + tl.minimum(tl.maximum(row_expert, 0), experts - 1).to(tl.int64) * stride
    own_row = held(row, rows)
    exponent = load_unit(own, unit, row, rows)
    up, down = unit_factors(exponent, L)
    steps = k // STEP
    place = tl.arange(0, TILE_M)[None, :, None]
    inner = tl.arange(0, STEP)[None, None, :]
    x_row = X + (slot // x_share).to(tl.int64)[:, None, None] * x_stride + inner + place * 0
    acc = tl.zeros((BATCH, TILE_N, TILE_M), tl.float32)
    for first in tl.range(0, steps, STEPS, num_stages=STAGES):
        # Steps past the end read the last one, with x taken as 0.
        at = tl.minimum(first + flat // TILE_N % STEPS, steps - 1)
        x_at = (first + batch % STEPS)[:, None, None]
        x = tl.load(x_row + x_at * STEP, mask=(place == 0) & (x_at < steps), other=0.0)
        if DECODE == "plain":
            value = decode_plain(own, p0, p1, p2, p3, p4, p5, own_row, at, rows, R, L)
        else:
            value = decode_half(own, p0, p1, p2, p3, p4, p5, own_row, at, rows, up, down, R, L, DECODE == "ptx")
        w = tl.reshape(in_order(value, R, L), (BATCH, TILE_N, STEP))
        acc = multiplied(w, tl.permute(x, (0, 2, 1)), acc, OPERAND)
    sums = tl.sum(acc, 2)
    if DECODE != "plain":
        sums = sums * tl.reshape((exponent << 23).to(tl.float32, bitcast=True), (BATCH, TILE_N))
    if SLOTS > 0:
        sums = sums * tl.load(Weights + slot)[:, None]
    total = tl.sum(tl.where(named[:, None], sums, 0.0), 0)
    out = at_n * TILE_N + tl.arange(0, TILE_N)
    tl.store(Y + y_row.to(tl.int64) * y_stride + out, total.to(Y.dtype.element_ty), mask=out < rows)
    if (at_n == 0) & (y_row == 0):
        tl.store(Executed, tl.full([], BUILD_ID, tl.uint32))


@triton.jit
def combine(
    Slots, Ids, Weights, Y, n, y_stride, experts, TOP_K: tl.constexpr, BLOCK: tl.constexpr, BUILD_ID: tl.constexpr
):
    """y[t, r] = sum over j, in order, of weight[t, j] * slots[t, j, r], in fp32; an id that names no expert adds 0.

    Grid (m, ceil(n / BLOCK)).
    """
    token = tl.program_id(0)
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = row < n
    total = tl.zeros((BLOCK,), tl.float32)
    for j in tl.static_range(TOP_K):
        slot = token * TOP_K + j
        id = tl.load(Ids + slot)
        weight = tl.load(Weights + slot)
        value = tl.load(Slots + slot.to(tl.int64) * n + row, mask=inside, other=0.0).to(tl.float32)
        total += tl.where((id >= 0) & (id < experts), value * weight, 0.0)
    tl.store(Y + token.to(tl.int64) * y_stride + row, total.to(Y.dtype.element_ty), mask=inside)
