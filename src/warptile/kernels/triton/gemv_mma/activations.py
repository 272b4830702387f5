"""Activations of `triton.gemv_mma`: staged once as fp16 pairs in the order in which the matrix instruction takes them.

fp16 stays as it is. bf16 and fp32 are first brought into fp16's upper range: each warp multiplies its part of a row by
the power of two that takes the part's largest magnitude into [2^14, 2^15), and undoes that on its sums.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from warptile.kernels.triton.gemv_mma.layouts import staging_layout
from warptile.kernels.triton.gemv_mma.tensors import along


@gluon.jit
def power(exponent):
    """2^(exponent - 127), fp32."""
    return (exponent << 23).to(gl.float32, bitcast=True)


@gluon.constexpr_function
def staged_at_once(tokens, stretches):
    """Stretches whose x a thread holds at once on its way to shared memory: eight for one token, fewer for more."""
    return max(1, min(8 // min(tokens, 8), 1 << (stretches - 1).bit_length()))


@gluon.jit
def load_pairs(
    X, m, token0, x_stride, first, end, block,
    L: gl.constexpr, WARPS: gl.constexpr, N: gl.constexpr, U: gl.constexpr, TOKENS: gl.constexpr, BLOCK: gl.constexpr,
):  # fmt: skip
    """BLOCK stretches of x as they are, 0 from step `end` on: (i32 pairs, the same) or two fp32 tensors."""
    STEP: gl.constexpr = 32 * L[2]
    LAY: gl.constexpr = staging_layout(BLOCK, WARPS, N, U, TOKENS, L[2])
    token = gl.minimum(token0 + along(LAY, 3), m - 1).to(gl.int64)
    word = along(LAY, 4) * 16 + along(LAY, 5) * 4 + along(LAY, 6)
    step = first + (block * BLOCK + along(LAY, 0)) * (WARPS * U) + along(LAY, 1) * U + along(LAY, 2)
    at = token * (x_stride // 2) + (step * (STEP // 2) + word)
    if X.dtype.element_ty == gl.float32:
        low = gl.load(X + 2 * at, mask=step < end, other=0.0)
        high = gl.load(X + 2 * at + 1, mask=step < end, other=0.0)
    else:
        low = gl.load(X.to(gl.pointer_type(gl.int32)) + at, mask=step < end, other=0)
        high = low
    return low, high


@gluon.jit
def widened(X, low, high):
    """What `load_pairs` found, as two fp32."""
    if X.dtype.element_ty == gl.bfloat16:
        high = (low & -65536).to(gl.float32, bitcast=True)
        low = (low << 16).to(gl.float32, bitcast=True)
    return low, high


@gluon.jit
def scaling(largest):
    """Biased exponent of the power of two for a largest magnitude given by its bits."""
    return gl.minimum(gl.maximum(268 - (largest >> 23), 1), 253)


@gluon.jit
def stage(
    X, low, high, memory, m, token0, x_stride, first, end,
    L: gl.constexpr, WARPS: gl.constexpr, N: gl.constexpr, U: gl.constexpr, TOKENS: gl.constexpr,
    BLOCK: gl.constexpr, BLOCKS: gl.constexpr,
):  # fmt: skip
    """Fill i32[blocks, block, W, U, chunks, 4 c, tokens, 4 s] with fp16 pairs of x, of which (low, high) are the first
    block's, already loaded.

    Returns the bits of the largest magnitude of each part of k and token, i32[W, tokens] (fp16: of no use).
    """
    LAY: gl.constexpr = staging_layout(BLOCK, WARPS, N, U, TOKENS, L[2])
    largest = gl.full((BLOCK, WARPS, U, TOKENS, L[2], 4, 4), 0, gl.int32, LAY)
    factor = 1.0
    if X.dtype.element_ty != gl.float16:
        for block in gl.static_range(BLOCKS):
            even, odd = low, high
            if block > 0:
                even, odd = load_pairs(X, m, token0, x_stride, first, end, block, L, WARPS, N, U, TOKENS, BLOCK)
            even, odd = widened(X, even, odd)
            largest = gl.maximum(largest, even.to(gl.int32, bitcast=True) & 0x7FFFFFFF)
            largest = gl.maximum(largest, odd.to(gl.int32, bitcast=True) & 0x7FFFFFFF)
        largest = gl.max(gl.max(gl.max(gl.max(gl.max(largest, 6), 5), 4), 2), 0)
        factor = power(scaling(largest))
        factor = gl.expand_dims(gl.expand_dims(factor, 0), 2)
        factor = gl.expand_dims(gl.expand_dims(gl.expand_dims(factor, 4), 5), 6)
    for block in gl.static_range(BLOCKS):
        even, odd = low, high
        if block > 0:
            even, odd = load_pairs(X, m, token0, x_stride, first, end, block, L, WARPS, N, U, TOKENS, BLOCK)
        if X.dtype.element_ty == gl.float16:
            pairs = even
        else:
            even, odd = widened(X, even, odd)
            pairs = gl.inline_asm_elementwise(
                "cvt.rn.f16x2.f32 $0, $2, $1;", "=r,r,r", [even * factor, odd * factor],
                dtype=gl.int32, is_pure=True, pack=1,
            )  # fmt: skip
        memory.index(block).store(gl.permute(pairs, (0, 1, 2, 4, 6, 3, 5)))
    return largest


@gluon.jit
def undo(
    largest, SUMS: gl.constexpr, TOKENS: gl.constexpr, COLUMNS: gl.constexpr, WARPS: gl.constexpr, N: gl.constexpr
):
    """The inverse of the power of two that a warp multiplied a token by, fp32[W, 1, COLUMNS] in layout SUMS."""
    PARENT: gl.constexpr = gl.BlockedLayout([1, 1, 1], [1, 4, 8], [WARPS, N, 1], [2, 1, 0])
    found = gl.convert_layout(power(254 - scaling(largest)), gl.SliceLayout(1, PARENT))
    again, _ = gl.broadcast(
        gl.expand_dims(found, 1), gl.full((WARPS, COLUMNS // TOKENS, TOKENS), 0.0, gl.float32, PARENT)
    )
    flat = gl.reshape(again, [WARPS, COLUMNS])
    return gl.expand_dims(gl.convert_layout(flat, gl.SliceLayout(1, SUMS)), 1)
