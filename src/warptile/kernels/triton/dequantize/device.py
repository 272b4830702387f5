"""Device code of `triton.dequantize`: packed weights to a dense matrix."""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.decode import decode_plain, held, in_order


@triton.jit
def dequantize(
    W, Out, Executed, rows, k, p0, p1, p2, p3, p4, p5,
    L: tl.constexpr, TILE_N: tl.constexpr, BUILD_ID: tl.constexpr,
):  # fmt: skip
    """Out[rows, k] = w, rounded to Out's type. Grid (k / step, ceil(rows / TILE_N))."""
    at = tl.program_id(0)
    tile = tl.program_id(1)
    STEP: tl.constexpr = 32 * L[2]
    row = tile * TILE_N + tl.arange(0, TILE_N)
    value = in_order(decode_plain(W, p0, p1, p2, p3, p4, p5, held(row, rows), at, rows, TILE_N, L), TILE_N, L)
    where = row[:, None].to(tl.int64) * k + at * STEP + tl.arange(0, STEP)[None, :]
    tl.store(Out + where, value.to(Out.dtype.element_ty), mask=row[:, None] < rows)
    if (at == 0) & (tile == 0):
        tl.store(Executed, tl.full([], BUILD_ID, tl.uint32))
