"""Device code of `triton.gemm`: weights decoded on their way into the matrix unit."""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.decode import decode_plain, held, in_order, load_unit, unit_factors
from warptile.layouts.triton.half_decode import decode_half


@triton.jit
def swizzled(tile, tiles_n, tiles_m, GROUP_M: tl.constexpr):
    """(m, n) of a tile: GROUP_M row tiles of x are walked through together, so that their weights are met in cache."""
    together = GROUP_M * tiles_n
    first = tile // together * GROUP_M
    size = tl.minimum(tiles_m - first, GROUP_M)
    return first + tile % together % size, tile % together // size


@triton.jit
def drained(acc):
    """`acc`, used by an empty instruction: every asynchronous matrix instruction on it has ended.

    ptxas before 13.3 may overwrite register operands of a matrix instruction that is still running.
    """
    return tl.inline_asm_elementwise("", "=f,0", [acc], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def part_at(Part, program, tile, total, sharers, steps, TILE_N: tl.constexpr, TILE_M: tl.constexpr):
    """Where a program keeps its sums [TILE_N, TILE_M] of a shared tile: it has one place for the tile in which its
    steps begin and one for the last."""
    place = 2 * program + tl.where(total * program // sharers >= tile * steps, 0, 1)
    own = tl.arange(0, TILE_N)[:, None] * TILE_M + tl.arange(0, TILE_M)[None, :]
    return Part + place.to(tl.int64) * (TILE_N * TILE_M) + own


@triton.jit
def multiplied(
    X, W, m, rows, x_stride, p0, p1, p2, p3, p4, p5, unit, row, token, first, count,
    L: tl.constexpr, TILE_N: tl.constexpr, TILE_M: tl.constexpr, OPERAND: tl.constexpr, DECODE: tl.constexpr,
    DRAIN: tl.constexpr,
):  # fmt: skip
    """fp32 sums [TILE_N, TILE_M] of the rows' weights times the tokens' x over `count` > 0 steps from `first` on."""
    STEP: tl.constexpr = 32 * L[2]
    tl.assume(count > 0)
    # Rows and tokens beyond the last repeat it and are not stored: loads then need no masks.
    own_row = held(row, rows)
    x_row = X + tl.minimum(token, m - 1).to(tl.int64)[:, None] * x_stride + tl.arange(0, STEP)[None, :]
    acc = tl.zeros((TILE_N, TILE_M), tl.float32)
    exponent = load_unit(W, unit, row, rows)
    up, down = unit_factors(exponent, L)
    for i in tl.range(0, count):
        at = first + i
        x = tl.load(x_row + at * STEP)
        if DECODE == "plain":
            value = decode_plain(W, p0, p1, p2, p3, p4, p5, own_row, at, rows, TILE_N, L)
        else:
            value = decode_half(
                W, p0, p1, p2, p3, p4, p5, own_row, at, rows, up, down, TILE_N, L, DECODE != "half", DECODE == "paired",
            )  # fmt: skip
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
def gemm(
    X, W, Y, Part, Count, Executed, m, rows, k, row0, x_stride, y_stride, p0, p1, p2, p3, p4, p5, unit, rest, sharers,
    L: tl.constexpr, TILE_N: tl.constexpr, TILE_M: tl.constexpr, SPLIT_K: tl.constexpr, GROUP_M: tl.constexpr,
    OPERAND: tl.constexpr, DECODE: tl.constexpr, DRAIN: tl.constexpr, BUILD_ID: tl.constexpr,
):  # fmt: skip
    """y[i, row0 + r] = sum_k x[i, k] w[r, k] for one slice of weights; fp32 sums over k in order, then over the splits.

    OPERAND: what both factors are rounded to: "fp16", "bf16", or fp32's input precision "tf32", "ieee"; "widened bf16"
    is bf16 for Triton's interpreter, which multiplies bf16 wrongly. DECODE: "plain" (fp32, then rounded to OPERAND),
    "half" (see `decode_half`), "ptx" (the same by PTX instructions) or "paired" (scales of a byte two at a time).
    Grid: tiles along n * tiles along m * SPLIT_K. With SPLIT_K > 1, Part is fp32[grid][TILE_N * TILE_M] and Count
    i32[tiles], zero before and after: the split that comes last adds all of them up in their own order. SPLIT_K = 0:
    programs walk through tiles; the first `sharers` of them share the steps of the first `rest` tiles evenly, and Part
    has two places a program, for its part of the first tile and of the last.
    """
    program = tl.program_id(0)
    if SPLIT_K == 0:
        steps = k // (32 * L[2])
        tiles_n = tl.cdiv(rows, TILE_N)
        tiles_m = tl.cdiv(m, TILE_M)
        programs = tl.num_programs(0)
        total = rest * steps
        begin = total * tl.minimum(program, sharers) // sharers
        end = total * tl.minimum(program + 1, sharers) // sharers
        shared = tl.where(end > begin, (end - 1) // steps + 1 - begin // steps, 0)
        for place in tl.range(0, shared + (tiles_n * tiles_m - rest) // programs, num_stages=1):
            tile = tl.where(place < shared, begin // steps + place, rest + program + (place - shared) * programs)
            first = tl.where(tile < rest, tl.maximum(begin - tile * steps, 0), 0)
            last = tl.where(tile < rest, tl.minimum(end - tile * steps, steps), steps)
            at_m, at_n = swizzled(tile, tiles_n, tiles_m, GROUP_M)
            row = at_n * TILE_N + tl.arange(0, TILE_N)
            token = at_m * TILE_M + tl.arange(0, TILE_M)
            acc = multiplied(
                X, W, m, rows, x_stride, p0, p1, p2, p3, p4, p5, unit, row, token, first, last - first,
                L, TILE_N, TILE_M, OPERAND, DECODE, DRAIN,
            )  # fmt: skip
            whole = last - first == steps
            if not whole:
                tl.store(part_at(Part, program, tile, total, sharers, steps, TILE_N, TILE_M), acc)
                tl.debug_barrier()
                first_owner = ((tile * steps + 1) * sharers - 1) // total
                last_owner = ((tile * steps + steps) * sharers - 1) // total
                if tl.atomic_add(Count + tile, 1, sem="acq_rel", scope="gpu") == last_owner - first_owner:
                    tl.debug_barrier()
                    acc = tl.zeros((TILE_N, TILE_M), tl.float32)
                    for other in tl.range(first_owner, last_owner + 1, num_stages=1):
                        parts = part_at(Part, other, tile, total, sharers, steps, TILE_N, TILE_M)
                        acc += tl.load(parts, cache_modifier=".cg")
                    tl.store(Count + tile, 0)
                    whole = last > first
            if whole:
                y = Y + token.to(tl.int64)[:, None] * y_stride + (row0 + row)[None, :]
                inside = (token[:, None] < m) & (row[None, :] < rows)
                tl.store(y, tl.trans(acc).to(Y.dtype.element_ty), mask=inside)
    else:
        split = program % SPLIT_K
        tile = program // SPLIT_K
        at_m, at_n = swizzled(tile, tl.cdiv(rows, TILE_N), tl.cdiv(m, TILE_M), GROUP_M)
        row = at_n * TILE_N + tl.arange(0, TILE_N)
        token = at_m * TILE_M + tl.arange(0, TILE_M)
        steps = k // (32 * L[2])
        first = steps * split // SPLIT_K
        count = steps * (split + 1) // SPLIT_K - first
        acc = multiplied(
            X, W, m, rows, x_stride, p0, p1, p2, p3, p4, p5, unit, row, token, first, count,
            L, TILE_N, TILE_M, OPERAND, DECODE, DRAIN,
        )  # fmt: skip
        y = Y + token.to(tl.int64)[:, None] * y_stride + (row0 + row)[None, :]
        inside = (token[:, None] < m) & (row[None, :] < rows)
        if SPLIT_K == 1:
            tl.store(y, tl.trans(acc).to(Y.dtype.element_ty), mask=inside)
        else:
            SIZE: tl.constexpr = TILE_N * TILE_M
            own = tl.arange(0, TILE_N)[:, None] * TILE_M + tl.arange(0, TILE_M)[None, :]
            parts = Part + tile.to(tl.int64) * (SPLIT_K * SIZE) + own
            tl.store(parts + split * SIZE, acc)
            tl.debug_barrier()
            if tl.atomic_add(Count + tile, 1, sem="acq_rel", scope="gpu") == SPLIT_K - 1:
                tl.debug_barrier()
                sums = tl.load(parts, cache_modifier=".cg")
                for other in tl.static_range(1, SPLIT_K):
                    sums += tl.load(parts + other * SIZE, cache_modifier=".cg")
                tl.store(y, tl.trans(sums).to(Y.dtype.element_ty), mask=inside)
                tl.store(Count + tile, 0)
    if program == 0:
        tl.store(Executed, tl.full([], BUILD_ID, tl.uint32))
