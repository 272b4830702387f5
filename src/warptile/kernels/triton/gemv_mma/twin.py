"""`triton.gemv_mma` in plain Triton, for Triton's interpreter, which runs no Gluon: the same arguments and values.

A warp's part of k is not told from its program's here, so bf16 and fp32 rows have one power of two a program.
"""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.decode import code_pairs, held, in_order, load_unit, padded, unit_factors
from warptile.layouts.triton.half_decode import half_levels, subnormal
from warptile.layouts.triton.pointwise import scale_words, scales_of


@triton.jit
def weights_of(W, p0, p1, p2, p3, p4, p5, row, at, rows, up, down, R: tl.constexpr, L: tl.constexpr):
    """One step's weights over the rows' units, fp16[R, 4, groups, slots, 2]; scales by `pointwise`."""
    GROUPS: tl.constexpr = L[7]
    SLOTS: tl.constexpr = 4 * L[2]
    PARTS: tl.constexpr = L[8] // (32 * L[2]) if L[8] > 32 * L[2] else 1
    pairs, _ = code_pairs(W, p0, p1, p2, row, at, rows, R, L)
    pairs = tl.reshape(pairs, (R, 4, GROUPS, SLOTS // GROUPS))
    group = tl.arange(0, GROUPS)[None, None, :]
    ahead = tl.zeros((1, 1, 1), tl.int32)
    inside = ahead == 0
    base = at.to(tl.int64)
    unit = (at // PARTS).to(tl.int64)
    part = at % PARTS
    own = row[:, None, None]
    if L[15] == 1:
        a, b, c = scale_words(
            W, p1, p2, p3, base, unit, base * 0, ahead, own, own * 0, group, part, padded(rows), inside, 0, L
        )
    elif L[15] == 2 or L[6] == "inline":
        a, b, c = scale_words(
            W, p2, p3, p4, base, unit, base * 0, ahead, own, own * 0, group, part, padded(rows), inside, 0, L
        )
    else:
        a, b, c = scale_words(
            W, p3, p4, p5, base, unit, base * 0, ahead, own, own * 0, group, part, padded(rows), inside, 0, L
        )
    scale, minimum = scales_of(a, b, c, group, part, up, down, L)
    if L[10] == 0:
        factor = (scale * (1.0 / 16777216.0)).to(tl.float16)[:, :, :, None]
        found = tl.join(half_levels(pairs & 0xFFFF, L) * factor, half_levels((pairs >> 16) & 0xFFFF, L) * factor)
    else:
        shift = minimum + scale * (L[9] / (L[10] * 16777216.0))
        factor = scale.to(tl.float16)[:, :, :, None]
        add = (-shift).to(tl.float16)[:, :, :, None]
        found = tl.join(subnormal(pairs & 0xFFFF) * factor + add, subnormal((pairs >> 16) & 0xFFFF) * factor + add)
    return found


@triton.jit
def gemv_mma(
    X, W, Y, Part, Count, Executed, m, rows, k, row0, x_stride, y_stride, p0, p1, p2, p3, p4, p5, unit,
    L: tl.constexpr, ROWS: tl.constexpr, TOKENS: tl.constexpr, WARPS: tl.constexpr, N: tl.constexpr, U: tl.constexpr,
    SPLIT_K: tl.constexpr, STRETCHES: tl.constexpr, FULL: tl.constexpr, AHEAD: tl.constexpr, PDL: tl.constexpr,
    DIRECT: tl.constexpr, LEAN: tl.constexpr, BUILD_ID: tl.constexpr,
):  # fmt: skip
    """As `device.gemv_mma`."""
    STEP: tl.constexpr = 32 * L[2]
    COLUMNS: tl.constexpr = TOKENS if TOKENS >= 8 else 8
    program = tl.program_id(0)
    at_m = tl.program_id(1)
    split = program % SPLIT_K
    tile = program // SPLIT_K
    first = split * (STRETCHES * WARPS * U)
    end = tl.minimum(k // STEP, first + STRETCHES * WARPS * U)
    row = tile * ROWS + tl.arange(0, ROWS)
    own_row = held(row, rows)
    exponent = load_unit(W, unit, row, rows)
    up, down = unit_factors(exponent, L)
    column = tl.arange(0, COLUMNS)
    token = at_m * TOKENS + column % TOKENS
    x_row = X + tl.minimum(token, m - 1).to(tl.int64)[:, None] * x_stride + tl.arange(0, STEP)[None, :]
    scaling = tl.full((COLUMNS,), 127, tl.int32)
    if X.dtype.element_ty != tl.float16:
        largest = tl.zeros((COLUMNS,), tl.int32)
        for at in tl.range(first, end):
            bits = tl.load(x_row + at * STEP).to(tl.float32).to(tl.int32, bitcast=True) & 0x7FFFFFFF
            largest = tl.maximum(largest, tl.max(bits, 1))
        scaling = tl.minimum(tl.maximum(268 - (largest >> 23), 1), 253)
    factor = (scaling << 23).to(tl.float32, bitcast=True)
    zero = tl.full([], 0, tl.int32)
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    for number in tl.range(first, end):
        at = zero + number
        w = in_order(weights_of(W, p0, p1, p2, p3, p4, p5, own_row, at, rows, up, down, ROWS, L), ROWS, L)
        x = tl.load(x_row + at * STEP)
        if X.dtype.element_ty != tl.float16:
            x = (x.to(tl.float32) * factor[:, None]).to(tl.float16)
        acc = tl.dot(w, tl.trans(x), acc)
    total = acc * ((254 - scaling) << 23).to(tl.float32, bitcast=True)[None, :]
    total = total * (exponent << 23).to(tl.float32, bitcast=True)[:, None]
    y = Y + token.to(tl.int64)[None, :] * y_stride + (row0 + row)[:, None]
    inside = (column[None, :] < TOKENS) & (token[None, :] < m) & (row[:, None] < rows)
    if SPLIT_K == 1:
        tl.store(y, total.to(Y.dtype.element_ty), mask=inside)
    else:
        SIZE: tl.constexpr = ROWS * COLUMNS
        at_tile = at_m * (tl.num_programs(0) // SPLIT_K) + tile
        own = tl.arange(0, ROWS)[:, None] * COLUMNS + column[None, :]
        parts = Part + at_tile.to(tl.int64) * (SPLIT_K * SIZE) + own
        tl.store(parts + split * SIZE, total)
        if tl.atomic_add(Count + at_tile, 1) == SPLIT_K - 1:
            found = tl.load(parts)
            for other in tl.static_range(1, SPLIT_K):
                found += tl.load(parts + other * SIZE)
            tl.store(y, found.to(Y.dtype.element_ty), mask=inside)
            tl.store(Count + at_tile, 0)
    if (program == 0) & (at_m == 0):
        tl.store(Executed, tl.full([], BUILD_ID, tl.uint32))
