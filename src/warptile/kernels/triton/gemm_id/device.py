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
def products(
    x_row, x_mask, W, rows, row, first, count, p0, p1, p2, p3, p4, p5, unit,
    L: tl.constexpr, TILE_N: tl.constexpr, TILE_M: tl.constexpr, OPERAND: tl.constexpr, DECODE: tl.constexpr,
    DRAIN: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """fp32[TILE_N, TILE_M]: sums over `count` steps from `first` of w[row, k] times what x_row [TILE_M, step] points
    to. OPERAND, DECODE, DRAIN: as in `triton.gemm`; MASKED: only rows with x_mask are read, others are 0."""
    STEP: tl.constexpr = 32 * L[2]
    own_row = held(row, rows)
    acc = tl.zeros((TILE_N, TILE_M), tl.float32)
    exponent = load_unit(W, unit, row, rows)
    up, down = unit_factors(exponent, L)
    tl.assume(count > 0)
    for i in tl.range(0, count):
        at = first + i
        if MASKED:
            x = tl.load(x_row + at * STEP, mask=x_mask, other=0.0)
        else:
            x = tl.load(x_row + at * STEP)
        if DECODE == "plain":
            value = decode_plain(W, p0, p1, p2, p3, p4, p5, own_row, at, rows, TILE_N, L)
        else:
            value = decode_half(W, p0, p1, p2, p3, p4, p5, own_row, at, rows, up, down, TILE_N, L, DECODE == "ptx")
        w = in_order(value, TILE_N, L)
        if OPERAND == "fp16":
            acc = tl.dot(w.to(tl.float16), tl.trans(x.to(tl.float16)), acc)
        elif OPERAND == "bf16":
            acc = tl.dot(w.to(tl.bfloat16), tl.trans(x.to(tl.bfloat16)), acc)
        elif OPERAND == "widened bf16":
            acc = tl.dot(w.to(tl.bfloat16).to(tl.float32), tl.trans(x.to(tl.bfloat16).to(tl.float32)), acc)
        else:
            acc = tl.dot(w.to(tl.float32), tl.trans(x.to(tl.float32)), acc, input_precision=OPERAND)
        if DRAIN:
            acc = drained(acc)
    if DECODE != "plain":
        acc = acc * (exponent << 23).to(tl.float32, bitcast=True)[:, None]
    return acc


@triton.jit
def one_tile(
    X, W, Y, Order, expert, start, count, rows, k, at_n, x_stride, y_stride, p0, p1, p2, p3, p4, p5, unit, experts,
    x_share, L: tl.constexpr, TILE_N: tl.constexpr, TILE_M: tl.constexpr, OPERAND: tl.constexpr, DECODE: tl.constexpr,
    DRAIN: tl.constexpr,
):  # fmt: skip
    """Rows of y of the slots Order[start .. start + count), against TILE_N rows of the expert that W points to."""
    STEP: tl.constexpr = 32 * L[2]
    row = at_n * TILE_N + tl.arange(0, TILE_N)
    place = tl.arange(0, TILE_M)
    slot = tl.load(Order + start + tl.minimum(place, count - 1))
    y = Y + slot.to(tl.int64)[:, None] * y_stride + row[None, :]
    inside = (place[:, None] < count) & (row[None, :] < rows)
    if expert == experts:
        tl.store(y, tl.zeros((TILE_M, TILE_N), Y.dtype.element_ty), mask=inside)
    else:
        x_row = X + (slot // x_share).to(tl.int64)[:, None] * x_stride + tl.arange(0, STEP)[None, :]
        acc = products(
            x_row, inside, W, rows, row, 0, k // STEP, p0, p1, p2, p3, p4, p5, unit,
            L, TILE_N, TILE_M, OPERAND, DECODE, DRAIN, False,
        )  # fmt: skip
        tl.store(y, tl.trans(acc).to(Y.dtype.element_ty), mask=inside)


@triton.jit
def gemm_sorted(
    X, W, Y, Order, Work, Executed, m, rows, k, row0, x_stride, y_stride, p0, p1, p2, p3, p4, p5, unit,
    experts, stride, x_share, L: tl.constexpr, TILE_N: tl.constexpr, TILE_M: tl.constexpr, TAIL: tl.constexpr,
    OPERAND: tl.constexpr, DECODE: tl.constexpr, DRAIN: tl.constexpr, BUILD_ID: tl.constexpr,
):  # fmt: skip
    """y[slot, r] = sum_k x[slot / x_share, k] w[expert of slot, r, k], tile by tile of `place_slots`' work.

    Grid: tiles along n * the most tiles that the slots can make; those past the last tile end at once. A tile of at
    most TAIL rows (0: none) is computed as one of TAIL. stride: words from one expert's weights to the next.
    """
    program = tl.program_id(0)
    if program == 0:
        tl.store(Executed, tl.full([], BUILD_ID, tl.uint32))
    tiles_n = tl.cdiv(rows, TILE_N)
    entry = Work + program // tiles_n * 4
    count = tl.load(entry + 2)
    if count > 0:
        expert = tl.load(entry)
        start = tl.load(entry + 1)
        at_n = program % tiles_n
        own = W + tl.minimum(expert, experts - 1).to(tl.int64) * stride
        if TAIL > 0:
            if count <= TAIL:
                one_tile(
                    X, own, Y, Order, expert, start, count, rows, k, at_n, x_stride, y_stride,
                    p0, p1, p2, p3, p4, p5, unit, experts, x_share, L, TILE_N, TAIL, OPERAND, DECODE, DRAIN,
                )  # fmt: skip
            else:
                one_tile(
                    X, own, Y, Order, expert, start, count, rows, k, at_n, x_stride, y_stride,
                    p0, p1, p2, p3, p4, p5, unit, experts, x_share, L, TILE_N, TILE_M, OPERAND, DECODE, DRAIN,
                )  # fmt: skip
        else:
            one_tile(
                X, own, Y, Order, expert, start, count, rows, k, at_n, x_stride, y_stride,
                p0, p1, p2, p3, p4, p5, unit, experts, x_share, L, TILE_N, TILE_M, OPERAND, DECODE, DRAIN,
            )  # fmt: skip


@triton.jit
def gemm_slots(
    X, W, Y, Ids, Weights, Part, Count, Executed, m, rows, k, row0, x_stride, y_stride, p0, p1, p2, p3, p4, p5, unit,
    experts, stride, x_share, top_k, L: tl.constexpr, TILE_N: tl.constexpr, TILE_M: tl.constexpr,
    SPLIT_K: tl.constexpr, SUMMED: tl.constexpr, OPERAND: tl.constexpr, DECODE: tl.constexpr, DRAIN: tl.constexpr,
    BUILD_ID: tl.constexpr,
):  # fmt: skip
    """As `gemm_sorted`, each slot by programs of its own, which need no order: the first of TILE_M rows is its own.

    Grid: slots * tiles along n * SPLIT_K. Where a row of y has several parts (splits of k; with SUMMED also the slots
    of a token, each times its weight), the one that comes last adds them up in their own order: Part fp32[slots *
    tiles * SPLIT_K, TILE_N] and Count i32[rows of y * tiles], zero before and after.
    """
    program = tl.program_id(0)
    if program == 0:
        tl.store(Executed, tl.full([], BUILD_ID, tl.uint32))
    tiles_n = tl.cdiv(rows, TILE_N)
    split = program % SPLIT_K
    at_n = program // SPLIT_K % tiles_n
    slot = program // (SPLIT_K * tiles_n)
    STEP: tl.constexpr = 32 * L[2]
    steps = k // STEP
    first = steps * split // SPLIT_K
    count = steps * (split + 1) // SPLIT_K - first
    row = at_n * TILE_N + tl.arange(0, TILE_N)
    expert = tl.load(Ids + slot)
    named = (expert >= 0) & (expert < experts)
    own = tl.zeros((TILE_N,), tl.float32)
    if named:
        place = tl.arange(0, TILE_M)[:, None]
        x_row = X + (slot // x_share).to(tl.int64) * x_stride + tl.arange(0, STEP)[None, :] + place * 0
        acc = products(
            x_row, place == 0, W + expert.to(tl.int64) * stride, rows, row, first, count,
            p0, p1, p2, p3, p4, p5, unit, L, TILE_N, TILE_M, OPERAND, DECODE, DRAIN, True,
        )  # fmt: skip
        own = tl.sum(tl.where(tl.arange(0, TILE_M)[None, :] == 0, acc, 0.0), 1)
    inside = row < rows
    if (SPLIT_K == 1) & (not SUMMED):
        tl.store(Y + slot.to(tl.int64) * y_stride + row, own.to(Y.dtype.element_ty), mask=inside)
    else:
        # Parts of one row of y lie together: [row, tile, slot of the token, split].
        taken = top_k if SUMMED else 1
        y_row = slot // taken
        line = y_row * tiles_n + at_n
        lane = tl.arange(0, TILE_N)
        parts = Part + line.to(tl.int64) * (taken * SPLIT_K * TILE_N) + lane
        tl.store(parts + (slot % taken * SPLIT_K + split) * TILE_N, own)
        tl.debug_barrier()
        if tl.atomic_add(Count + line, 1, sem="acq_rel", scope="gpu") == taken * SPLIT_K - 1:
            tl.debug_barrier()
            total = tl.zeros((TILE_N,), tl.float32)
            for j in tl.range(0, taken):
                sum_j = tl.load(parts + j * SPLIT_K * TILE_N, cache_modifier=".cg")
                for other in tl.static_range(1, SPLIT_K):
                    sum_j += tl.load(parts + (j * SPLIT_K + other) * TILE_N, cache_modifier=".cg")
                if SUMMED:
                    id = tl.load(Ids + y_row * taken + j)
                    weight = tl.load(Weights + y_row * taken + j)
                    sum_j = tl.where((id >= 0) & (id < experts), sum_j * weight, 0.0)
                total += sum_j
            tl.store(Y + y_row.to(tl.int64) * y_stride + row, total.to(Y.dtype.element_ty), mask=inside)
            tl.store(Count + line, 0)


@triton.jit
def combine(
    Slots, Ids, Weights, Y, n, y_stride, experts, top_k,
    BLOCK: tl.constexpr, BUILD_ID: tl.constexpr,
):  # fmt: skip
    """y[t, r] = sum over j, in order, of weight[t, j] * slots[t, j, r], in fp32; an id that names no expert adds 0.

    Grid (m, ceil(n / BLOCK)).
    """
    token = tl.program_id(0)
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = row < n
    total = tl.zeros((BLOCK,), tl.float32)
    for j in tl.range(0, top_k, num_stages=1):
        slot = token * top_k + j
        id = tl.load(Ids + slot)
        weight = tl.load(Weights + slot)
        value = tl.load(Slots + slot.to(tl.int64) * n + row, mask=inside, other=0.0).to(tl.float32)
        total += tl.where((id >= 0) & (id < experts), value * weight, 0.0)
    tl.store(Y + token.to(tl.int64) * y_stride + row, total.to(Y.dtype.element_ty), mask=inside)
