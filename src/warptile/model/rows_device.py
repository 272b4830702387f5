"""Device code that decodes chosen rows of a packed weight: an embedding."""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.decode import decode_plain, in_order


@triton.jit
def chosen_rows(
    W, Ids, Out, count, rows, k, p0, p1, p2, p3, p4, p5, L: tl.constexpr, TILE: tl.constexpr
):  # fmt: skip
    """Out[i, k] = w[Ids[i]], decoded in fp32 and rounded once; NaN where the id names no row. Grid (k / step,
    ceil(count / TILE))."""
    at = tl.program_id(0)
    STEP: tl.constexpr = 32 * L[2]
    i = tl.program_id(1) * TILE + tl.arange(0, TILE)
    wanted = tl.load(Ids + i, mask=i < count, other=0)
    known = (wanted >= 0) & (wanted < rows)
    row = tl.where(known, wanted, 0).to(tl.int32)
    value = in_order(decode_plain(W, p0, p1, p2, p3, p4, p5, row, at, rows, TILE, L), TILE, L)
    value = tl.where(known[:, None], value, float("nan"))
    out = Out + i[:, None].to(tl.int64) * k + at * STEP + tl.arange(0, STEP)[None, :]
    tl.store(out, value.to(Out.dtype.element_ty), mask=i[:, None] < count)
