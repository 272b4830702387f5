"""Activations of `triton.gemv_mma`: staged once as fp16 pairs in the order in which the matrix instruction takes them.

fp16 stays as it is. bf16 and fp32 are first brought into fp16's upper range: each warp multiplies its part of a row by
the power of two that takes the part's largest magnitude into [2^14, 2^15), and undoes that on its sums.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from warptile.kernels.triton.gemv_mma.codes import along
from warptile.kernels.triton.gemv_mma.layouts import staging_layout


@gluon.jit
def power(exponent):
    """2^(exponent - 127), fp32."""
    return (exponent << 23).to(gl.float32, bitcast=True)


@gluon.jit
def load_pairs(X, at, inside):
    """Neighbouring elements 2 `at`, 2 `at` + 1 of x as they are: (i32 pairs, the same) or (fp32, fp32)."""
    if X.dtype.element_ty == gl.float32:
        low = gl.load(X + 2 * at, mask=inside, other=0.0)
        high = gl.load(X + 2 * at + 1, mask=inside, other=0.0)
    else:
        low = gl.load(X.to(gl.pointer_type(gl.int32)) + at, mask=inside, other=0)
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
    X, memory, m, token0, x_stride, first, end,
    L: gl.constexpr, WARPS: gl.constexpr, U: gl.constexpr, TOKENS: gl.constexpr, STRETCHES: gl.constexpr,
):  # fmt: skip
    """Fill i32[stretches, W, U, chunks, 4 c, tokens, 4 s] with fp16 pairs of x, 0 from step `end` on.

    Returns the bits of the largest magnitude of each warp and token, i32[W, 1, tokens, 1, 1, 1] (0 for fp16).
    """
    STEP: gl.constexpr = 32 * L[2]
    LAY: gl.constexpr = staging_layout(WARPS, U, TOKENS, L[2])
    token = gl.minimum(token0 + along(LAY, 2), m - 1).to(gl.int64)
    word = along(LAY, 3) * 16 + along(LAY, 4) * 4 + along(LAY, 5)
    own = first + along(LAY, 0) * U + along(LAY, 1)
    at = token * (x_stride // 2) + own * (STEP // 2) + word
    largest = gl.full((WARPS, U, TOKENS, L[2], 4, 4), 0, gl.int32, LAY)
    if X.dtype.element_ty != gl.float16:
        for i in gl.static_range(STRETCHES):
            inside = own + i * (WARPS * U) < end
            low, high = load_pairs(X, at + i * (WARPS * U * STEP // 2), inside)
            low, high = widened(X, low, high)
            largest = gl.maximum(largest, low.to(gl.int32, bitcast=True) & 0x7FFFFFFF)
            largest = gl.maximum(largest, high.to(gl.int32, bitcast=True) & 0x7FFFFFFF)
        largest = gl.max(gl.max(gl.max(gl.max(largest, 5), 4), 3), 1)
        factor = power(scaling(largest))
        factor = gl.expand_dims(gl.expand_dims(gl.expand_dims(gl.expand_dims(factor, 1), 3), 4), 5)
    for i in gl.static_range(STRETCHES):
        inside = own + i * (WARPS * U) < end
        low, high = load_pairs(X, at + i * (WARPS * U * STEP // 2), inside)
        if X.dtype.element_ty == gl.float16:
            pairs = low
        else:
            low, high = widened(X, low, high)
            pairs = gl.inline_asm_elementwise(
                "cvt.rn.f16x2.f32 $0, $2, $1;", "=r,r,r", [low * factor, high * factor],
                dtype=gl.int32, is_pure=True, pack=1,
            )  # fmt: skip
        memory.index(i).store(gl.permute(pairs, (0, 1, 3, 5, 2, 4)))
    return largest


@gluon.jit
def undo(largest, SUMS: gl.constexpr, TOKENS: gl.constexpr, COLUMNS: gl.constexpr, WARPS: gl.constexpr):
    """The inverse of the power of two that a warp multiplied a token by, fp32[W, 1, COLUMNS] in layout SUMS."""
    PARENT: gl.constexpr = gl.BlockedLayout([1, 1, 1], [1, 4, 8], [WARPS, 1, 1], [2, 1, 0])
    found = gl.convert_layout(power(254 - scaling(largest)), gl.SliceLayout(1, PARENT))
    again, _ = gl.broadcast(gl.expand_dims(found, 1), gl.full((WARPS, COLUMNS // TOKENS, TOKENS), 0.0, gl.float32, PARENT))
    flat = gl.reshape(again, [WARPS, COLUMNS])
    return gl.expand_dims(gl.convert_layout(flat, gl.SliceLayout(1, SUMS)), 1)
