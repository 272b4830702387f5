"""fp16 activations of `triton.gemv_mma` as they lie in memory: copied to shared memory without a register between, and
taken from there in the right factor's order by the matrix unit's own loads (`ldmatrix`)."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from warptile.kernels.triton.gemv_mma.activations import power, scaling
from warptile.kernels.triton.gemv_mma.layouts import linear, powers, sums_layout
from warptile.kernels.triton.gemv_mma.tensors import along
from warptile.kernels.triton.gluon_names import barrier, copy_later

MOST_BATCHES = gl.constexpr(4)


@gluon.constexpr_function
def rows_layout():
    """fp16[.., tokens, 64] in shared memory, 128 bytes a row: 16 bytes of eight neighbours meet no bank twice."""
    return gl.SwizzledSharedLayout(8, 1, 8, [4, 3, 2, 1, 0])


@gluon.constexpr_function
def copy_layout(W, N, U, parts, tokens):
    """Which lane copies what of a stretch's [W, U, parts, tokens, 64]: 16 bytes at a time, neighbours along k."""
    order = [(4, 8), (4, 16), (4, 32)] + [(3, b) for b in powers(tokens)] + [(2, b) for b in powers(parts)]
    order += [(1, b) for b in powers(U)] + [(0, b) for b in powers(W)]
    threads = 5 + len(powers(W * N))
    padded = (order[:threads] + [(-1, 1)] * threads)[:threads]
    registers = [(4, 1), (4, 2), (4, 4), *order[threads:]]
    return linear([W, U, parts, tokens, 64], registers, padded[:5], padded[5:])


@gluon.constexpr_function
def factor_layout(W, N, parts, tokens):
    """fp16[W, 1, parts, tokens, 64]: the right factor of 16 x 8 x 16 matrix instructions."""
    registers = [(4, 1), (4, 8), (4, 16), (4, 32)] + [(2, b) for b in powers(parts)]
    registers += [(3, b) for b in powers(tokens) if b >= 8]
    lanes = [(4, 2), (4, 4), (3, 1), (3, 2), (3, 4)]
    warps = [(-1, b) for b in powers(N)] + [(0, b) for b in powers(W)]
    return linear([W, 1, parts, tokens, 64], registers, lanes, warps)


@gluon.constexpr_function
def batches(stretches, depth):
    """(stretches a batch, batches): copies are waited for in at most four batches of whole turns of the loop."""
    turns = (stretches + depth - 1) // depth
    size = depth * ((turns + MOST_BATCHES - 1) // MOST_BATCHES)
    return size, (stretches + size - 1) // size


@gluon.jit
def copy_rows(
    X, memory, m, token0, x_stride, first, end,
    STEP: gl.constexpr, W: gl.constexpr, N: gl.constexpr, U: gl.constexpr, TOKENS: gl.constexpr,
    STRETCHES: gl.constexpr, FULL: gl.constexpr, DEPTH: gl.constexpr, BEGIN: gl.constexpr, END: gl.constexpr,
    LEAN: gl.constexpr,
):  # fmt: skip
    """Ask for stretches BEGIN to END - 1 of a program's part of x, in `batches`. Steps from `end` on are 0. Rows past
    the last are the last, or, where LEAN, 0: nothing is read of lines that every program would ask for."""
    LAY: gl.constexpr = copy_layout(W, N, U, STEP // 64, TOKENS)
    BATCH: gl.constexpr = batches(STRETCHES, DEPTH)[0]
    token = token0 + along(LAY, 3)
    asked = token
    if not LEAN:
        asked = gl.minimum(token, m - 1)
    ahead = along(LAY, 0) * U + along(LAY, 1)
    rows = X + asked.to(gl.int64) * x_stride + (ahead * STEP + along(LAY, 2) * 64 + along(LAY, 4))
    for i in gl.static_range(BEGIN, END):
        step = first + i * (W * U)
        if FULL != 0 and LEAN == 0:
            copy_later(memory.index(i), rows + step * STEP)
        else:
            inside = ahead + step < end
            if LEAN:
                inside = inside & (token < m)
            inside, source = gl.broadcast(inside, rows + step * STEP)
            copy_later(memory.index(i), source, mask=inside)
        if (i + 1) % BATCH == 0 or i + 1 == STRETCHES:
            async_copy.commit_group()


@gluon.jit
def await_rows(i, STRETCHES: gl.constexpr, DEPTH: gl.constexpr):
    """Before stretch i of the loop: where a batch begins, it must be there, for all warps."""
    BATCH: gl.constexpr = batches(STRETCHES, DEPTH)[0]
    COUNT: gl.constexpr = batches(STRETCHES, DEPTH)[1]
    for batch in gl.static_range(COUNT):
        if i == batch * BATCH:
            async_copy.wait_group(COUNT - 1 - batch)
            barrier()


@gluon.jit
def into_halves(
    brain, halves, W: gl.constexpr, N: gl.constexpr, U: gl.constexpr, PARTS: gl.constexpr, TOKENS: gl.constexpr,
    STRETCHES: gl.constexpr,
):  # fmt: skip
    """Turn copied bf16 rows into fp16 where they lie (`halves` is the same memory), each token's multiplied by the
    power of two of `activations`. Returns the bits of each token's largest magnitude, i32[tokens]."""
    LAY: gl.constexpr = copy_layout(W, N, U, PARTS, TOKENS)
    async_copy.wait_group(0)
    barrier()
    largest = gl.full((W, U, PARTS, TOKENS, 64), 0, gl.int32, LAY)
    for i in range(STRETCHES):
        x = brain.index(i).load(LAY).to(gl.float32)
        largest = gl.maximum(largest, x.to(gl.int32, bitcast=True) & 0x7FFFFFFF)
    largest = gl.max(gl.max(gl.max(gl.max(largest, 4), 2), 1), 0)
    factor = power(scaling(largest))
    factor = gl.expand_dims(gl.expand_dims(gl.expand_dims(gl.expand_dims(factor, 0), 1), 2), 4)
    for i in range(STRETCHES):
        x = brain.index(i).load(LAY).to(gl.float32) * factor
        # Where threads are more than pieces, some hold the same.
        barrier()
        halves.index(i).store(x.to(gl.float16))
    return largest


@gluon.jit
def undo_columns(largest, SUMS: gl.constexpr):
    """The inverse of the power of two that each token was multiplied by, as a row of sums' columns."""
    row = gl.convert_layout(power(254 - scaling(largest)), gl.SliceLayout(0, SUMS))
    return gl.expand_dims(row, 0)


@gluon.jit
def right_factor(memory, W: gl.constexpr, N: gl.constexpr, TOKENS: gl.constexpr, STEP: gl.constexpr):
    """A step of x, fp16[W, step, tokens], of memory [W, 1, parts, tokens, 64]."""
    x = memory.load(factor_layout(W, N, STEP // 64, TOKENS))
    x = gl.reshape(gl.permute(x, (0, 1, 2, 4, 3)), [W, STEP, TOKENS])
    return gl.convert_layout(x, gl.DotOperandLayout(1, sums_layout(W, N), 2), assert_trivial=True)
