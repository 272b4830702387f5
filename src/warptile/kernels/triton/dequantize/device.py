"""Device code of `triton.dequantize`: packed weights to a dense matrix."""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.decode import (
    decode_half,
    decode_plain,
    half_units,
    held,
    in_order,
    load_unit,
    unit_factors,
)


@triton.jit
def dequantize(
    W, Out, Executed, rows, k, p0, p1, p2, p3, p4, p5, unit,
    L: tl.constexpr, TILE_N: tl.constexpr, STEPS: tl.constexpr, STAGES: tl.constexpr,
    DECODE: tl.constexpr, BUILD_ID: tl.constexpr,
):  # fmt: skip
    """Out[rows, k] = w, rounded to Out's type. DECODE as in `triton.gemm`.

    Grid (ceil(k / step / STEPS), ceil(rows / TILE_N)); steps past the last are the last.
    """
    first = tl.program_id(0) * STEPS
    tile = tl.program_id(1)
    STEP: tl.constexpr = 32 * L[2]
    row = tile * TILE_N + tl.arange(0, TILE_N)
    own_row = held(row, rows)
    exponent = load_unit(W, unit, row, rows)
    up, down = unit_factors(exponent, L)
    out = Out + row[:, None].to(tl.int64) * k + tl.arange(0, STEP)[None, :]
    for i in tl.range(0, STEPS, num_stages=STAGES):
        at = tl.minimum(first + i, k // STEP - 1)
        if DECODE == "plain":
            value = decode_plain(W, p0, p1, p2, p3, p4, p5, own_row, at, rows, TILE_N, L)
        else:
            value = decode_half(W, p0, p1, p2, p3, p4, p5, own_row, at, rows, up, down, TILE_N, L, DECODE == "ptx")
            if Out.dtype.element_ty == tl.float16:
                one, other = half_units(exponent)
                value = value * one[:, None, None, None, None] * other[:, None, None, None, None]
            else:
                value = value.to(tl.float32) * (exponent << 23).to(tl.float32, bitcast=True)[:, None, None, None, None]
        value = in_order(value.to(Out.dtype.element_ty), TILE_N, L)
        tl.store(out + at * STEP, value, mask=row[:, None] < rows)
    if (first == 0) & (tile == 0):
        tl.store(Executed, tl.full([], BUILD_ID, tl.uint32))
