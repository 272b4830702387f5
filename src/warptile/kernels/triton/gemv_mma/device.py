"""Device code of `triton.gemv_mma`, in Gluon: few rows of x on 16 x 8 x 16 matrix instructions, weights on the left."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import mma_v2
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from warptile.kernels.triton.gemv_mma.activations import load_pairs, stage, staged_at_once, undo
from warptile.kernels.triton.gemv_mma.as_it_lies import (
    await_rows,
    batches,
    copy_rows,
    into_halves,
    right_factor,
    rows_layout,
    undo_columns,
)
from warptile.kernels.triton.gemv_mma.codes import load_codes, weights_of
from warptile.kernels.triton.gemv_mma.ends import store_sums
from warptile.kernels.triton.gemv_mma.layouts import sums_layout, x_layout
from warptile.kernels.triton.gemv_mma.scales import factors_of, load_scales, unit_factors
from warptile.kernels.triton.gemv_mma.tensors import along
from warptile.kernels.triton.gluon_names import barrier, reinterpreted


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
    L: gl.constexpr, WARPS: gl.constexpr, N: gl.constexpr, U: gl.constexpr, R: gl.constexpr, FULL: gl.constexpr,
):  # fmt: skip
    """Words of codes and scales of a stretch: WARPS * U steps from number `first` on, none at or after `end`; FULL:
    there is none."""
    PARTS: gl.constexpr = L[8] // (32 * L[2]) if L[8] > 32 * L[2] else 1
    base = first.to(gl.int64)
    unit = (first // PARTS).to(gl.int64)
    left = None if FULL else end - first
    w0, w1, w2 = load_codes(W, p0, p1, p2, base, rows0, padded, left, L, WARPS, N, U, R)
    if L[15] == 1:
        a, b, c = load_scales(W, p1, p2, p3, base, unit, rows0, padded, left, L, WARPS, N, U, R)
    elif L[15] == 2 or L[6] == "inline":
        a, b, c = load_scales(W, p2, p3, p4, base, unit, rows0, padded, left, L, WARPS, N, U, R)
    else:
        a, b, c = load_scales(W, p3, p4, p5, base, unit, rows0, padded, left, L, WARPS, N, U, R)
    return w0, w1, w2, a, b, c


@gluon.jit
def one_step(tensor, STEP_AT: gl.constexpr):
    """Step STEP_AT of a warp's two, along dimension 1; with one step, or words for both, the tensor itself."""
    W: gl.constexpr = tensor.shape[0]
    R: gl.constexpr = tensor.shape[2]
    found = tensor
    if tensor.shape[1] == 2:
        first, second = gl.split(gl.permute(tensor, (0, 2, 3, 4, 1)))
        found = gl.reshape(second if STEP_AT == 1 else first, [W, 1, R, tensor.shape[3], tensor.shape[4]])
    return found


@gluon.jit
def some_rows(tensor, ROWS: gl.constexpr, AT: gl.constexpr):
    """Rows ROWS * AT and on of [W, 1, R, ..], R at most twice ROWS."""
    W: gl.constexpr = tensor.shape[0]
    C: gl.constexpr = tensor.shape[3]
    M: gl.constexpr = tensor.shape[4]
    found = tensor
    if tensor.shape[2] == 2 * ROWS:
        first, second = gl.split(gl.permute(gl.reshape(tensor, [W, 1, 2, ROWS, C, M]), (0, 1, 3, 4, 5, 2)))
        found = second if AT == 1 else first
    return found


@gluon.jit
def left(
    w0, w1, w2, factors, L: gl.constexpr, WARPS: gl.constexpr, N: gl.constexpr, AT: gl.constexpr, LEAN: gl.constexpr
):
    """A step's weights, 16 rows a warp, over the rows' units as the left factor, fp16[W, 16 N, step]."""
    STEP: gl.constexpr = 32 * L[2]
    R: gl.constexpr = 16 * N
    own = some_rows(w0, R, AT), some_rows(w1, R, AT), some_rows(w2, R, AT), some_rows(factors, R, AT)
    weights = halves(weights_of(own[0], own[1], own[2], own[3], L, WARPS, N, 1, R, LEAN))  # W 1 R c g p e
    weights = gl.permute(weights, (0, 1, 2, 4, 5, 3, 6))  # W 1 R | g p c e
    weights = gl.reshape(weights, [WARPS, R, STEP])
    return gl.convert_layout(weights, gl.DotOperandLayout(0, sums_layout(WARPS, N), 2), assert_trivial=True)


@gluon.jit
def right(memory, L: gl.constexpr, WARPS: gl.constexpr, N: gl.constexpr, TOKENS: gl.constexpr, COLUMNS: gl.constexpr):
    """A step of x as the right factor, fp16[W, step, COLUMNS]; fewer tokens than columns are repeated."""
    STEP: gl.constexpr = 32 * L[2]
    LAY: gl.constexpr = x_layout(WARPS, N, 1, L[2], COLUMNS // TOKENS, TOKENS)
    words = gl.expand_dims(memory.load(gl.SliceLayout(4, LAY)), 4)  # W 1 g c 1 T s
    words, _ = gl.broadcast(words, along(LAY, 4))
    x = gl.permute(halves(words), (0, 1, 2, 6, 3, 7, 4, 5))  # W 1 | g s c e | again T
    x = gl.reshape(x, [WARPS, STEP, COLUMNS])
    return gl.convert_layout(x, gl.DotOperandLayout(1, sums_layout(WARPS, N), 2), assert_trivial=True)


@gluon.jit
def add_stretch(
    acc, more, w0, w1, w2, a, b, c, memory, at, up, down,
    L: gl.constexpr, WARPS: gl.constexpr, N: gl.constexpr, U: gl.constexpr, R: gl.constexpr,
    TOKENS: gl.constexpr, COLUMNS: gl.constexpr, DIRECT: gl.constexpr, LEAN: gl.constexpr,
):  # fmt: skip
    """The sums of a warp's first 16 rows and of the next, with the products of stretch `at` added: a step and 16 rows
    after another, so that few weights are held at once."""
    factors = factors_of(a, b, c, up, down, L, WARPS, N, U, R, LEAN)
    for u in gl.static_range(U):
        s0 = one_step(w0, u)
        s1 = one_step(w1, u)
        s2 = one_step(w2, u)
        sf = one_step(factors, u)
        if DIRECT:
            x = right_factor(memory.index(at).slice(u, 1, 1), WARPS, N, TOKENS, 32 * L[2])
        else:
            x = right(memory.index(at).slice(u, 1, 1), L, WARPS, N, TOKENS, COLUMNS)
        acc = mma_v2(left(s0, s1, s2, sf, L, WARPS, N, 0, LEAN), x, acc)
        if R == 32 * N:
            more = mma_v2(left(s0, s1, s2, sf, L, WARPS, N, 1, LEAN), x, more)
    return acc, more


@gluon.jit
def gemv_mma(
    X, W, Y, Part, Count, Executed, m, rows, k, row0, x_stride, y_stride, p0, p1, p2, p3, p4, p5, unit,
    L: gl.constexpr, ROWS: gl.constexpr, TOKENS: gl.constexpr, WARPS: gl.constexpr, N: gl.constexpr, U: gl.constexpr,
    SPLIT_K: gl.constexpr, STRETCHES: gl.constexpr, FULL: gl.constexpr, AHEAD: gl.constexpr, PDL: gl.constexpr,
    DIRECT: gl.constexpr, LEAN: gl.constexpr, BUILD_ID: gl.constexpr,
):  # fmt: skip
    """y[i, row0 + r] = sum_k x[i, k] w[r, k] for TOKENS rows of x and ROWS rows of w a program, k in SPLIT_K parts.

    WARPS * N warps split k WARPS ways and rows N ways. A stretch is WARPS * U steps, U for each part of k; a program
    takes STRETCHES of them (FULL: k has no step too few for that), with the words of AHEAD stretches on their way. PDL:
    the program may start before the launch ahead of it has ended; it reads weights, which that one does not write, and
    waits before it touches anything else. Grid (tiles along n * SPLIT_K, tiles along m). Part and Count as in
    `triton.gemm`.
    """
    STEP: gl.constexpr = 32 * L[2]
    COLUMNS: gl.constexpr = TOKENS if TOKENS >= 8 else 8
    STRETCH: gl.constexpr = WARPS * U
    DEPTH: gl.constexpr = AHEAD if AHEAD < STRETCHES else STRETCHES
    SUMS: gl.constexpr = sums_layout(WARPS, N)
    BLOCK: gl.constexpr = staged_at_once(TOKENS, STRETCHES)
    BLOCKS: gl.constexpr = (STRETCHES + BLOCK - 1) // BLOCK
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
    if DIRECT:
        SOON: gl.constexpr = batches(STRETCHES, DEPTH)[0]
        XTYPE: gl.constexpr = X.dtype.element_ty
        PARTS: gl.constexpr = STEP // 64
        held = gl.allocate_shared_memory(
            gl.float16, [STRETCHES * WARPS * U * PARTS, TOKENS, 64], gl.NVMMASharedLayout(128, 16, 2)
        )
        copied = reinterpreted(held, XTYPE, [STRETCHES, WARPS, U, PARTS, TOKENS, 64], rows_layout())
        stretches = reinterpreted(held, gl.float16, [STRETCHES, WARPS, U, PARTS, TOKENS, 64], rows_layout())
    else:
        memory = gl.allocate_shared_memory(
            gl.int32,
            [BLOCKS, BLOCK, WARPS, U, L[2], 4, TOKENS, 4],
            gl.SwizzledSharedLayout(1, 1, 1, [6, 5, 4, 3, 2, 1, 0]),
        )
        stretches = reinterpreted(
            memory,
            gl.int32,
            [BLOCKS * BLOCK, WARPS, U, L[2], 4, TOKENS, 4],
            gl.SwizzledSharedLayout(1, 1, 1, [5, 4, 3, 2, 1, 0]),
        )
    # x is met first; where that is not yet there, weights are.
    if not PDL:
        if DIRECT:
            copy_rows(
                X, copied, m, at_m * TOKENS, x_stride, first, end, STEP, WARPS, N, U, TOKENS, STRETCHES, FULL,
                DEPTH, 0, SOON, LEAN,
            )  # fmt: skip
        else:
            low, high = load_pairs(X, m, at_m * TOKENS, x_stride, first, end, 0, L, WARPS, N, U, TOKENS, BLOCK)
    w0, w1, w2, a, b, c = fetch(W, p0, p1, p2, p3, p4, p5, first, rows0, padded, end, L, WARPS, N, U, ROWS, FULL)
    if DEPTH >= 2:
        n0, n1, n2, na, nb, nc = fetch(
            W, p0, p1, p2, p3, p4, p5, first + STRETCH, rows0, padded, end, L, WARPS, N, U, ROWS, FULL
        )
    if DEPTH >= 3:
        o0, o1, o2, oa, ob, oc = fetch(
            W, p0, p1, p2, p3, p4, p5, first + 2 * STRETCH, rows0, padded, end, L, WARPS, N, U, ROWS, FULL
        )
    units = (W + unit).to(gl.pointer_type(gl.uint8))
    up, down = unit_factors(units, rows0, rows, L, WARPS, N, U, ROWS)
    OUT: gl.constexpr = gl.SliceLayout(0, SUMS)
    row = rows0 + gl.expand_dims(gl.arange(0, ROWS, layout=gl.SliceLayout(1, OUT)), 1)
    exponent = gl.load(units + gl.minimum(row, rows - 1)).to(gl.int32)
    if PDL:
        gdc_wait()
    if DIRECT:
        copy_rows(
            X, copied, m, at_m * TOKENS, x_stride, first, end, STEP, WARPS, N, U, TOKENS, STRETCHES, FULL,
            DEPTH, 0 if PDL else SOON, STRETCHES, LEAN,
        )  # fmt: skip
        if XTYPE != gl.float16:
            largest = into_halves(copied, stretches, WARPS, N, U, PARTS, TOKENS, STRETCHES)
    else:
        if PDL:
            low, high = load_pairs(X, m, at_m * TOKENS, x_stride, first, end, 0, L, WARPS, N, U, TOKENS, BLOCK)
        largest = stage(
            X, low, high, memory, m, at_m * TOKENS, x_stride, first, end, L, WARPS, N, U, TOKENS, BLOCK, BLOCKS
        )
    # Here and not at the first use, which is in the loop.
    barrier()
    acc = gl.full((WARPS, 16 * N, COLUMNS), 0, gl.float32, SUMS)
    more = acc
    for i in range(0, STRETCHES, DEPTH):
        following = first + (i + DEPTH) * STRETCH
        if DIRECT != 0 and X.dtype.element_ty == gl.float16:
            await_rows(i, STRETCHES, DEPTH)
        acc, more = add_stretch(
            acc, more, w0, w1, w2, a, b, c, stretches, i, up, down,
            L, WARPS, N, U, ROWS, TOKENS, COLUMNS, DIRECT, LEAN,
        )  # fmt: skip
        if i + DEPTH < STRETCHES:
            w0, w1, w2, a, b, c = fetch(
                W, p0, p1, p2, p3, p4, p5, following, rows0, padded, end, L, WARPS, N, U, ROWS, FULL
            )
        if DEPTH >= 2:
            # One condition is the compiler's, the other the device's.
            if i + 1 < STRETCHES:
                acc, more = add_stretch(
                    acc, more, n0, n1, n2, na, nb, nc, stretches, i + 1, up, down,
                    L, WARPS, N, U, ROWS, TOKENS, COLUMNS, DIRECT, LEAN,
                )  # fmt: skip
                if i + 1 + DEPTH < STRETCHES:
                    n0, n1, n2, na, nb, nc = fetch(
                        W, p0, p1, p2, p3, p4, p5, following + STRETCH, rows0, padded, end, L, WARPS, N, U, ROWS, FULL
                    )
        if DEPTH >= 3:
            if i + 2 < STRETCHES:
                acc, more = add_stretch(
                    acc, more, o0, o1, o2, oa, ob, oc, stretches, i + 2, up, down,
                    L, WARPS, N, U, ROWS, TOKENS, COLUMNS, DIRECT, LEAN,
                )  # fmt: skip
                if i + 2 + DEPTH < STRETCHES:
                    o0, o1, o2, oa, ob, oc = fetch(
                        W, p0, p1, p2, p3, p4, p5, following + 2 * STRETCH, rows0, padded, end,
                        L, WARPS, N, U, ROWS, FULL,
                    )  # fmt: skip
    if DIRECT == 0 and X.dtype.element_ty != gl.float16:
        inverse = undo(largest, SUMS, TOKENS, COLUMNS, WARPS, N)
        acc = acc * inverse
        more = more * inverse
    if ROWS == 32 * N:
        acc = gl.reshape(gl.permute(gl.join(acc, more), (0, 3, 1, 2)), [WARPS, 32 * N, COLUMNS])
        total = gl.convert_layout(gl.sum(acc, 0), OUT)
    else:
        total = gl.sum(acc, 0)
    if DIRECT != 0 and X.dtype.element_ty != gl.float16:
        total = total * undo_columns(largest, OUT)
    column = gl.expand_dims(gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, OUT)), 0)
    token = at_m * TOKENS + column
    total = total * (exponent << 23).to(gl.float32, bitcast=True)
    y = Y + token.to(gl.int64) * y_stride + (row0 + row)
    inside = (column < TOKENS) & (token < m) & (row < rows)
    at = at_m * (gl.num_programs(0) // SPLIT_K) + tile
    given = None
    if LEAN:
        given = inside
    store_sums(
        total, y, inside, given, Part, Count, at, split, (row - rows0) * COLUMNS + column, ROWS * COLUMNS, SPLIT_K
    )
    if (program == 0) & (at_m == 0):
        gl.store(Executed, gl.full([], BUILD_ID, gl.uint32))
