"""Device code of `triton.gemv_mma`, in Gluon: few rows of x on 16 x 8 x 16 matrix instructions, weights on the left."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import mma_v2
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from warptile.kernels.triton.gemv_mma.activations import stage, undo
from warptile.kernels.triton.gemv_mma.codes import along, load_codes, weights_of
from warptile.kernels.triton.gemv_mma.layouts import sums_layout, x_layout
from warptile.kernels.triton.gemv_mma.scales import factors_of, load_scales, unit_factors


@gluon.jit
def halves(words):
    """The two fp16 of each i32, along a new last axis."""
    low, high = gl.inline_asm_elementwise(
        "mov.b32 {$0, $1}, $2;", "=h,=h,r", [words], dtype=(gl.float16, gl.float16), is_pure=True, pack=1
    )
    return gl.join(low, high)


@gluon.jit
def fetch(
    W, p0, p1, p2, p3, p4, p5, first, rows0, padded, end,
    L: gl.constexpr, WARPS: gl.constexpr, U: gl.constexpr, R: gl.constexpr,
):  # fmt: skip
    """Words of codes and scales of a stretch: WARPS * U steps from number `first` on, none at or after `end`."""
    PARTS: gl.constexpr = L[8] // (32 * L[2]) if L[8] > 32 * L[2] else 1
    base = first.to(gl.int64)
    unit = (first // PARTS).to(gl.int64)
    left = end - first
    w0, w1, w2 = load_codes(W, p0, p1, p2, base, rows0, padded, left, L, WARPS, U, R)
    if L[15] == 1:
        a, b, c = load_scales(W, p1, p2, p3, base, unit, rows0, padded, left, L, WARPS, U, R)
    elif L[15] == 2 or L[6] == "inline":
        a, b, c = load_scales(W, p2, p3, p4, base, unit, rows0, padded, left, L, WARPS, U, R)
    else:
        a, b, c = load_scales(W, p3, p4, p5, base, unit, rows0, padded, left, L, WARPS, U, R)
    return w0, w1, w2, a, b, c


@gluon.jit
def left(w0, w1, w2, a, b, c, up, down, L: gl.constexpr, WARPS: gl.constexpr, U: gl.constexpr, R: gl.constexpr):
    """A stretch's weights over the rows' units as the left factor, fp16[U * W, R, step]."""
    STEP: gl.constexpr = 32 * L[2]
    factors = factors_of(a, b, c, up, down, L, WARPS, U, R)
    weights = halves(weights_of(w0, w1, w2, factors, L, WARPS, U, R))  # W U R c g p e
    weights = gl.permute(weights, (1, 0, 2, 4, 5, 3, 6))  # U W R | g p c e
    weights = gl.reshape(weights, [U * WARPS, R, STEP])
    return gl.convert_layout(weights, gl.DotOperandLayout(0, sums_layout(WARPS), 2), assert_trivial=True)


@gluon.jit
def right(memory, L: gl.constexpr, WARPS: gl.constexpr, U: gl.constexpr, TOKENS: gl.constexpr, COLUMNS: gl.constexpr):
    """A stretch of x as the right factor, fp16[U * W, step, COLUMNS]; fewer tokens than columns are repeated."""
    STEP: gl.constexpr = 32 * L[2]
    LAY: gl.constexpr = x_layout(WARPS, U, L[2], COLUMNS // TOKENS, TOKENS)
    words = gl.expand_dims(memory.load(gl.SliceLayout(3, LAY)), 3)  # W U g 1 T c s
    words, _ = gl.broadcast(words, along(LAY, 3))
    x = gl.permute(halves(words), (1, 0, 2, 6, 5, 7, 3, 4))  # U W | g s c e | again T
    x = gl.reshape(x, [U * WARPS, STEP, COLUMNS])
    return gl.convert_layout(x, gl.DotOperandLayout(1, sums_layout(WARPS), 2), assert_trivial=True)


@gluon.jit
def gemv_mma(
    X, W, Y, Part, Count, Executed, m, rows, k, row0, x_stride, y_stride, p0, p1, p2, p3, p4, p5, unit,
    L: gl.constexpr, ROWS: gl.constexpr, TOKENS: gl.constexpr, WARPS: gl.constexpr, U: gl.constexpr,
    SPLIT_K: gl.constexpr, STRETCHES: gl.constexpr, AHEAD: gl.constexpr, PDL: gl.constexpr, BUILD_ID: gl.constexpr,
):  # fmt: skip
    """y[i, row0 + r] = sum_k x[i, k] w[r, k] for TOKENS rows of x and ROWS rows of w a program, k in SPLIT_K parts.

    A stretch is WARPS * U steps, U for each warp; a program takes STRETCHES of them, with the words of AHEAD stretches
    on their way. PDL: the program may start before the launch ahead of it has ended; it reads weights, which that one
    does not write, and waits before it touches anything else. Grid (tiles along n * SPLIT_K, tiles along m). Part and
    Count as in `triton.gemm`.
    """
    STEP: gl.constexpr = 32 * L[2]
    COLUMNS: gl.constexpr = TOKENS if TOKENS >= 8 else 8
    STRETCH: gl.constexpr = WARPS * U
    SUMS: gl.constexpr = sums_layout(WARPS)
    if PDL:
        gdc_launch_dependents()
    program = gl.program_id(0)
    at_m = gl.program_id(1)
    split = program % SPLIT_K
    tile = program // SPLIT_K
    rows0 = tile * ROWS
    padded = (rows + 15) // 16 * 16
    first = split * (STRETCHES * STRETCH)
    end = gl.minimum(k // STEP, first + STRETCHES * STRETCH)
    w0, w1, w2, a, b, c = fetch(W, p0, p1, p2, p3, p4, p5, first, rows0, padded, end, L, WARPS, U, ROWS)
    if AHEAD >= 2:
        n0, n1, n2, na, nb, nc = fetch(
            W, p0, p1, p2, p3, p4, p5, first + STRETCH, rows0, padded, end, L, WARPS, U, ROWS
        )
    if AHEAD >= 3:
        o0, o1, o2, oa, ob, oc = fetch(
            W, p0, p1, p2, p3, p4, p5, first + 2 * STRETCH, rows0, padded, end, L, WARPS, U, ROWS
        )
    units = (W + unit).to(gl.pointer_type(gl.uint8))
    up, down = unit_factors(units, rows0, rows, L, WARPS, U, ROWS)
    memory = gl.allocate_shared_memory(
        gl.int32, [STRETCHES, WARPS, U, L[2], TOKENS, 4, 4], gl.SwizzledSharedLayout(1, 1, 1, [5, 4, 3, 2, 1, 0])
    )
    if PDL:
        gdc_wait()
    largest = stage(X, memory, m, at_m * TOKENS, x_stride, first, end, L, WARPS, U, TOKENS, STRETCHES)
    # Here and not at the first use, which is in the loop.
    gl.thread_barrier()
    acc = gl.full((U * WARPS, ROWS, COLUMNS), 0, gl.float32, SUMS)
    for i in range(0, STRETCHES, AHEAD):
        following = first + (i + AHEAD) * STRETCH
        acc = mma_v2(
            left(w0, w1, w2, a, b, c, up, down, L, WARPS, U, ROWS),
            right(memory.index(i), L, WARPS, U, TOKENS, COLUMNS), acc,
        )  # fmt: skip
        w0, w1, w2, a, b, c = fetch(W, p0, p1, p2, p3, p4, p5, following, rows0, padded, end, L, WARPS, U, ROWS)
        if AHEAD >= 2:
            # A stretch past the last has no weights and is met with the last one's x.
            acc = mma_v2(
                left(n0, n1, n2, na, nb, nc, up, down, L, WARPS, U, ROWS),
                right(memory.index(gl.minimum(i + 1, STRETCHES - 1)), L, WARPS, U, TOKENS, COLUMNS), acc,
            )  # fmt: skip
            n0, n1, n2, na, nb, nc = fetch(
                W, p0, p1, p2, p3, p4, p5, following + STRETCH, rows0, padded, end, L, WARPS, U, ROWS
            )
        if AHEAD >= 3:
            acc = mma_v2(
                left(o0, o1, o2, oa, ob, oc, up, down, L, WARPS, U, ROWS),
                right(memory.index(gl.minimum(i + 2, STRETCHES - 1)), L, WARPS, U, TOKENS, COLUMNS), acc,
            )  # fmt: skip
            o0, o1, o2, oa, ob, oc = fetch(
                W, p0, p1, p2, p3, p4, p5, following + 2 * STRETCH, rows0, padded, end, L, WARPS, U, ROWS
            )
    if X.dtype.element_ty != gl.float16:
        acc = acc * undo(largest, SUMS, TOKENS, COLUMNS, U, WARPS)
    total = gl.sum(acc, 0)
    OUT: gl.constexpr = gl.SliceLayout(0, SUMS)
    row = rows0 + gl.expand_dims(gl.arange(0, ROWS, layout=gl.SliceLayout(1, OUT)), 1)
    column = gl.expand_dims(gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, OUT)), 0)
    token = at_m * TOKENS + column
    total = total * (gl.load(units + gl.minimum(row, rows - 1)).to(gl.int32) << 23).to(gl.float32, bitcast=True)
    y = Y + token.to(gl.int64) * y_stride + (row0 + row)
    inside = (column < TOKENS) & (token < m) & (row < rows)
    if SPLIT_K == 1:
        gl.store(y, total.to(Y.dtype.element_ty), mask=inside)
    else:
        SIZE: gl.constexpr = ROWS * COLUMNS
        at = at_m * (gl.num_programs(0) // SPLIT_K) + tile
        parts = Part + at.to(gl.int64) * (SPLIT_K * SIZE) + ((row - rows0) * COLUMNS + column)
        gl.store(parts + split * SIZE, total)
        gl.thread_barrier()
        if gl.atomic_add(Count + at, 1, sem="acq_rel", scope="gpu") == SPLIT_K - 1:
            gl.thread_barrier()
            found = gl.load(parts, cache_modifier=".cg")
            for other in gl.static_range(1, SPLIT_K):
                found += gl.load(parts + other * SIZE, cache_modifier=".cg")
            gl.store(y, found.to(Y.dtype.element_ty), mask=inside)
            gl.store(Count + at, 0)
    if (program == 0) & (at_m == 0):
        gl.store(Executed, gl.full([], BUILD_ID, gl.uint32))
