"""`triton.gemv_trits` in plain Triton, for Triton's interpreter, which runs no Gluon: the same arguments, activations
and digits; products of a block are summed in fp32."""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.decode import half_bits, held, padded
from warptile.layouts.triton.pointwise import typed


@triton.jit
def digits_less_one(word, byte, power):
    """Digit n of byte `byte` of words, less 1, fp32; power = 3^n."""
    state = (((word >> (8 * byte)) & 255) * power) & 255
    return (((state * 3) >> 8) - 1).to(tl.float32)


@triton.jit
def gemv_trits(
    X, W, Y, Part, Count, Executed, m, rows, k, row0, x_stride, y_stride, p0, p1, p2, p3, p4, p5, unit,
    TOKENS: tl.constexpr, WARPS: tl.constexpr, N: tl.constexpr, U: tl.constexpr, SPLIT_K: tl.constexpr,
    STRETCHES: tl.constexpr, STEPS: tl.constexpr, FULL: tl.constexpr, AHEAD: tl.constexpr, PDL: tl.constexpr,
    UPPER: tl.constexpr, BUILD_ID: tl.constexpr,
):  # fmt: skip
    """As `device.gemv_trits`."""
    ROWS: tl.constexpr = 16 * N
    program = tl.program_id(0)
    at_m = tl.program_id(1)
    split = program % SPLIT_K
    tile = program // SPLIT_K
    first = split * (STRETCHES * WARPS * U)
    end = tl.minimum(k // 128, first + STRETCHES * WARPS * U)
    row = tile * ROWS + tl.arange(0, ROWS)
    own = held(row, rows)[:, None]
    column = tl.arange(0, 2)
    token = at_m * TOKENS + column
    e = tl.arange(0, 128)
    # Elements 0 to 79 are five digits of 16 bytes, 80 to 119 of eight, 120 to 127 four of two.
    stage = (e >= 80).to(tl.int32) + (e >= 120).to(tl.int32)
    byte = tl.where(stage == 0, e & 15, tl.where(stage == 1, e & 7, e & 1))
    digit = tl.where(stage == 0, e >> 4, tl.where(stage == 1, (e - 80) >> 3, (e - 120) >> 1))
    power = tl.where(digit == 0, 1, tl.where(digit == 1, 3, tl.where(digit == 2, 9, tl.where(digit == 3, 27, 81))))
    lane = (byte >> 1) & 3
    inside = tl.where(stage == 0, 2 * (byte & 1) + (byte >> 3), byte & 1)
    acc = tl.zeros((ROWS, 2), tl.float32)
    zero = tl.full([], 0, tl.int32)
    for number in tl.range(first, end):
        at = (zero + number).to(tl.int64) * padded(rows)
        wide = tl.load(W + p0 + (at + own) * 4 + lane[None, :])
        narrow = tl.load(typed(W, p1, 16) + (at + own) * 4 + lane[None, :]).to(tl.int32)
        tail = tl.load(W + p2 + (at + own) + 0 * lane[None, :])
        word = tl.where(stage[None, :] == 0, wide, tl.where(stage[None, :] == 1, narrow, tail))
        w = digits_less_one(word, inside[None, :], power[None, :])
        d = half_bits((tl.load(W + p2 + (at + own)) >> 16) & 0xFFFF)
        x = tl.load(X + tl.minimum(token, m - 1).to(tl.int64)[:, None] * x_stride + number * 128 + e[None, :])
        x = x.to(tl.float32)
        largest = tl.max(x.to(tl.int32, bitcast=True) & 0x7FFFFFFF, 1)
        factor = (tl.minimum(273 - UPPER - (largest >> 23), 240) << 23).to(tl.float32, bitcast=True)
        one = ((254 - tl.minimum(273 - UPPER - (largest >> 23), 240)) << 23).to(tl.float32, bitcast=True)
        one = tl.where((largest >> 23) >= 255, float("nan"), one)
        whole = x * factor[:, None] + 12582912.0 - 12582912.0
        acc += tl.sum(w[:, None, :] * whole[None, :, :], 2) * (d * one[None, :])
    y = Y + token.to(tl.int64)[None, :] * y_stride + (row0 + row)[:, None]
    within = (column[None, :] < TOKENS) & (token[None, :] < m) & (row[:, None] < rows)
    if SPLIT_K == 1:
        tl.store(y, acc.to(Y.dtype.element_ty), mask=within)
    else:
        SIZE: tl.constexpr = ROWS * 2
        at_tile = at_m * (tl.num_programs(0) // SPLIT_K) + tile
        parts = Part + at_tile.to(tl.int64) * (SPLIT_K * SIZE) + tl.arange(0, ROWS)[:, None] * 2 + column[None, :]
        tl.store(parts + split * SIZE, acc)
        if tl.atomic_add(Count + at_tile, 1) == SPLIT_K - 1:
            found = tl.load(parts)
            for other in tl.static_range(1, SPLIT_K):
                found += tl.load(parts + other * SIZE)
            tl.store(y, found.to(Y.dtype.element_ty), mask=within)
            tl.store(Count + at_tile, 0)
    if (program == 0) & (at_m == 0):
        tl.store(Executed, tl.full([], BUILD_ID, tl.uint32))
