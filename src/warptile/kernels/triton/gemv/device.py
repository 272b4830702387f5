"""Device code of `triton.gemv`: few rows of x, fp32 multiply-adds outside the matrix unit."""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.decode import decode_half, decode_plain, held, load_unit, unit_factors


@triton.jit
def gemv(
    X, W, Y, Executed, m, rows, k, row0, x_stride, y_stride, p0, p1, p2, p3, p4, p5, unit,
    L: tl.constexpr, TILE_N: tl.constexpr, TILE_M: tl.constexpr, STEPS: tl.constexpr, STAGES: tl.constexpr,
    DECODE: tl.constexpr, BUILD_ID: tl.constexpr,
):  # fmt: skip
    """y[i, row0 + r] = sum_k x[i, k] w[r, k] for TILE_M rows of x and TILE_N rows of w a program.

    STEPS steps along k are taken at once, by different warps; each thread sums in fp32 over the steps it meets, then
    all partial sums are added up. DECODE as in `triton.gemm`. Grid (ceil(rows / TILE_N), ceil(m / TILE_M)).
    """
    at_n = tl.program_id(0)
    at_m = tl.program_id(1)
    R: tl.constexpr = STEPS * TILE_N
    CHUNK: tl.constexpr = 32 * L[2]
    GROUPS: tl.constexpr = L[7]
    SLOTS: tl.constexpr = 4 * L[2] // GROUPS
    flat = tl.arange(0, R)
    row = held(at_n * TILE_N + flat % TILE_N, rows)
    steps = k // CHUNK
    exponent = load_unit(W, unit, row, rows)
    up, down = unit_factors(exponent, L)
    token = at_m * TILE_M + tl.arange(0, TILE_M)
    slot = tl.arange(0, 4 * L[2])
    inside_step = 8 * slot[None, None, None, :, None] + 2 * tl.arange(0, 4)[None, None, :, None, None]
    inside_step += tl.arange(0, 2)[None, None, None, None, :]
    x_tile = X + token.to(tl.int64)[:, None, None, None, None] * x_stride + inside_step
    wave = tl.arange(0, STEPS)
    acc = tl.zeros((TILE_M, STEPS, TILE_N, 4, GROUPS, SLOTS, 2), tl.float32)
    for first in tl.range(0, steps, STEPS, num_stages=STAGES):
        at = first + flat // TILE_N
        # Steps past the end read the last one, with x taken as 0.
        at = tl.minimum(at, steps - 1)
        if DECODE == "plain":
            w = decode_plain(W, p0, p1, p2, p3, p4, p5, row, at, rows, R, L)
        else:
            w = decode_half(W, p0, p1, p2, p3, p4, p5, row, at, rows, up, down, R, L, DECODE == "ptx").to(tl.float32)
        step = (first + wave)[None, :, None, None, None]
        x = tl.load(x_tile + step * CHUNK, mask=(token[:, None, None, None, None] < m) & (step < steps), other=0.0)
        x = tl.reshape(x.to(tl.float32), (TILE_M, STEPS, 1, 4, GROUPS, SLOTS, 2))
        acc += tl.reshape(w, (1, STEPS, TILE_N, 4, GROUPS, SLOTS, 2)) * x
    total = tl.sum(tl.sum(tl.sum(acc, 6), 5), 4)
    total = tl.sum(tl.sum(total, 3), 1)
    out = at_n * TILE_N + tl.arange(0, TILE_N)
    if DECODE != "plain":
        total = total * (load_unit(W, unit, out, rows) << 23).to(tl.float32, bitcast=True)[None, :]
    y = Y + token.to(tl.int64)[:, None] * y_stride + (row0 + out)[None, :]
    tl.store(y, total.to(Y.dtype.element_ty), mask=(token[:, None] < m) & (out[None, :] < rows))
    if (at_n == 0) & (at_m == 0):
        tl.store(Executed, tl.full([], BUILD_ID, tl.uint32))
