"""Device code of `triton.gemm_int8`: activations to int8 codes, then whole-number dot products of weights and codes."""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.kernels.triton.gemm.device import swizzled
from warptile.layouts.triton.decode import codes_and_scales, held, load_scales, look_up, padded

ROUND = tl.constexpr(12582912.0)
ROUND_BITS = tl.constexpr(0x4B400000)
INFINITY_BITS = tl.constexpr(0x7F800000)


@triton.jit
def quantize(
    X, Q, S, T, m, k, x_stride,
    BLOCK: tl.constexpr, PARTS: tl.constexpr, BLOCKS: tl.constexpr, BUILD_ID: tl.constexpr,
):  # fmt: skip
    """Activations X[m, k] to codes Q i8[m, k], scales S fp32[k / BLOCK, m], sums of codes T fp32[k PARTS / BLOCK, m].

    scale = max|x| / 127, code = round(x / scale): |code| <= 127, |x - scale * code| <= scale / 2 but for roundings. A
    block of zeros, or one whose scale is not normal, has codes 0; one that holds a value that is not finite has scale
    NaN. Grid (m, ceil(k / BLOCK / BLOCKS)).
    """
    row = tl.program_id(0)
    block = tl.program_id(1) * BLOCKS + tl.arange(0, BLOCKS)
    count = k // BLOCK
    inside = block < count
    at = block[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(X + row.to(tl.int64) * x_stride + at, mask=inside[:, None], other=0.0).to(tl.float32)
    # Magnitudes are ordered as their bits are, with infinities and NaN above all numbers.
    top = tl.max(x.to(tl.int32, bitcast=True) & 0x7FFFFFFF, axis=1)
    # A product is rounded correctly where a quotient need not be: a block whose largest value is 127 has scale 1.
    scale = top.to(tl.float32, bitcast=True) * (1.0 / 127.0)
    usable = (scale >= 1.17549435e-38) & (top < INFINITY_BITS)
    inverse = tl.where(usable, 1.0 / tl.where(usable, scale, 1.0), 0.0)
    shifted = tl.where(usable[:, None], x, 0.0) * inverse[:, None] + ROUND
    code = shifted.to(tl.int32, bitcast=True) - ROUND_BITS
    code = tl.minimum(tl.maximum(code, -127), 127)
    tl.store(Q + row.to(tl.int64) * k + at, code.to(tl.int8), mask=inside[:, None])
    tl.store(S + block.to(tl.int64) * m + row, tl.where(top < INFINITY_BITS, scale, float("nan")), mask=inside)
    sums = tl.sum(tl.reshape(code, (BLOCKS, PARTS, BLOCK // PARTS)), axis=2).to(tl.float32)
    part = block[:, None] * PARTS + tl.arange(0, PARTS)[None, :]
    tl.store(T + part.to(tl.int64) * m + row, sums, mask=inside[:, None])


@triton.jit
def signed_codes(pairs, R: tl.constexpr, SLOTS: tl.constexpr, OFFSET: tl.constexpr, L: tl.constexpr):
    """Codes i32[R, 4, SLOTS] two a word to what they stand for, i8[R, 8 SLOTS] in the order of k."""
    low = pairs & 0xFFFF
    high = (pairs >> 16) & 0xFFFF
    if L[10] == 0:
        low = look_up(low, L)
        high = look_up(high, L)
    else:
        low = low * L[10] - OFFSET
        high = high * L[10] - OFFSET
    both = tl.join(low.to(tl.int8), high.to(tl.int8))
    return tl.reshape(tl.permute(both, (0, 2, 1, 3)), (R, 8 * SLOTS))


@triton.jit
def chunk_plane(W, plane, row, at, chunk, rows, CHUNKS: tl.constexpr, B: tl.constexpr):
    """Codes of a plane of B bits of one chunk of a step, i32[R, 4, 4] two a word: see `decode.bit_pairs`."""
    BITS: tl.constexpr = 8 * B * CHUNKS if 8 * B * CHUNKS < 32 else 32
    HALF: tl.constexpr = BITS // 2
    SLOTS: tl.constexpr = HALF // B
    WORDS: tl.constexpr = 4 * CHUNKS // SLOTS
    if BITS == 32:
        P = W + plane
    elif BITS == 16:
        P = W.to(tl.pointer_type(tl.uint16)) + plane.to(tl.int64) * 2
    else:
        P = W.to(tl.pointer_type(tl.uint8)) + plane.to(tl.int64) * 4
    P += at.to(tl.int64) * padded(rows) * (4 * WORDS)
    slot = 4 * chunk + tl.arange(0, 4)[None, None, :]
    words = (row[:, None] * 4 + tl.arange(0, 4)[None, :])[:, :, None] * WORDS + slot // SLOTS
    word = tl.load(P + words).to(tl.int32)
    shift = slot % SLOTS * B
    MASK: tl.constexpr = (1 << B) - 1
    return ((word >> shift) & MASK) | (((word >> (shift + HALF)) & MASK) << 16)


@triton.jit
def scales_of(W, p0, p1, p2, p3, p4, p5, row, at, rows, one, L: tl.constexpr):
    """(scales, minimums) of a step of a layout of bit planes: see `decode.load_scales`."""
    if L[15] == 1:
        scale, minimum = load_scales(W, p1, p2, p3, 0, row, at, rows, one, one, L)
    else:
        scale, minimum = load_scales(W, p2, p3, p4, 0, row, at, rows, one, one, L)
    return scale, minimum


@triton.jit
def by_row(groups, R: tl.constexpr, COUNT: tl.constexpr, CHUNKS: tl.constexpr, PARTS: tl.constexpr):
    """Scales fp32[R, 4 or 1, COUNT], equal along the second axis, as [R, PARTS, CHUNKS]."""
    if groups.shape[1] == 4:
        bits = tl.max(groups.to(tl.int32, bitcast=True), axis=1)
    else:
        bits = tl.reshape(groups.to(tl.int32, bitcast=True), (R, COUNT))
    if COUNT < CHUNKS:
        wide = tl.broadcast_to(bits[:, :, None], (R, COUNT, CHUNKS // COUNT))
        bits = tl.reshape(wide, (R, CHUNKS))
    found = tl.permute(tl.reshape(bits, (R, CHUNKS, PARTS)), (0, 2, 1))
    return found.to(tl.float32, bitcast=True)


@triton.jit
def picked(tile, part, chunk, PARTS: tl.constexpr, CHUNKS: tl.constexpr):
    """tile[R, PARTS, CHUNKS] at (part, chunk), fp32[R]."""
    number = tl.arange(0, PARTS)[:, None] * CHUNKS + tl.arange(0, CHUNKS)[None, :]
    kept = tl.where((number == part * CHUNKS + chunk)[None, :, :], tile, 0.0)
    return tl.sum(tl.sum(kept, axis=2), axis=1)


@triton.jit
def ended(dot):
    """`dot`, used by an empty instruction: the asynchronous matrix instruction that makes it has ended."""
    return tl.inline_asm_elementwise("", "=r,0", [dot], dtype=tl.int32, is_pure=True, pack=1)


@triton.jit
def block_sum(acc, w, x, scale, minimum, sums, factor, HAS_MINIMUM: tl.constexpr, DRAIN: tl.constexpr):
    """acc[N, M] + factor[M] * (scale[N] * (w[N, K] x[M, K]^T) - minimum[N] * sums[M]), the dot in whole numbers."""
    dot = tl.dot(w, tl.trans(x), out_dtype=tl.int32)
    if DRAIN:
        dot = ended(dot)
    value = dot.to(tl.float32) * scale[:, None]
    if HAS_MINIMUM:
        value = value - minimum[:, None] * sums[None, :]
    return acc + value * factor[None, :]


@triton.jit
def gemm_int8(
    Q, S, T, W, Y, Executed, m, rows, k, row0, y_stride, p0, p1, p2, p3, p4, p5,
    L: tl.constexpr, OFFSET: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr, TILE_N: tl.constexpr,
    TILE_M: tl.constexpr, GROUP_M: tl.constexpr, DRAIN: tl.constexpr, BUILD_ID: tl.constexpr,
):  # fmt: skip
    """y[i, row0 + r] = sum over blocks of x's scale * (w's scale * (codes of w . codes of x) - minimum * sum of codes).

    Dots are int32; what is scaled is added in fp32 in the order of k. Q, S, T as `quantize` leaves them. Grid: tiles
    along n * tiles along m.
    """
    program = tl.program_id(0)
    at_m, at_n = swizzled(program, tl.cdiv(rows, TILE_N), tl.cdiv(m, TILE_M), GROUP_M)
    CHUNKS: tl.constexpr = 1 if 32 * L[2] == BLOCK else L[2]
    SLOTS: tl.constexpr = 4 * L[2] // CHUNKS
    STEP: tl.constexpr = 32 * L[2]
    row = at_n * TILE_N + tl.arange(0, TILE_N)
    token = at_m * TILE_M + tl.arange(0, TILE_M)
    own_row = held(row, rows)
    own_token = tl.minimum(token, m - 1)
    x_row = Q + own_token.to(tl.int64)[:, None] * k + tl.arange(0, BLOCK)[None, :]
    acc = tl.zeros((TILE_N, TILE_M), tl.float32)
    one = tl.full((TILE_N, 1, 1), 1.0, tl.float32)
    lower = (tl.arange(0, BLOCK) < BLOCK // 2)[None, :]
    zero = tl.full([], 0, tl.int32)
    for i in tl.range(0, k // STEP):
        at = zero + i
        if CHUNKS == 1:
            pairs, scale, minimum = codes_and_scales(W, p0, p1, p2, p3, p4, p5, own_row, at, rows, one, one, TILE_N, L)
            w = signed_codes(pairs, TILE_N, SLOTS, OFFSET, L)
            s = tl.reshape(by_row(scale, TILE_N, 1, 1, 1), (TILE_N,))
            x = tl.load(x_row + at * BLOCK)
            factor = tl.load(S + at.to(tl.int64) * m + own_token)
            if L[16]:
                n = tl.reshape(by_row(minimum, TILE_N, 1, 1, 1), (TILE_N,))
                sums = tl.load(T + at.to(tl.int64) * m + own_token)
            else:
                n = s
                sums = factor
            acc = block_sum(acc, w, x, s, n, sums, factor, L[16], DRAIN)
        else:
            scale, minimum = scales_of(W, p0, p1, p2, p3, p4, p5, own_row, at, rows, one, L)
            scale = by_row(scale, TILE_N, L[7], CHUNKS, PARTS)
            minimum = by_row(minimum, TILE_N, L[7], CHUNKS, PARTS) if L[16] else scale
            for j in tl.range(0, CHUNKS):
                chunk = zero + j
                pairs = chunk_plane(W, p0, own_row, at, chunk, rows, CHUNKS, L[0])
                if L[1] != 0:
                    pairs = pairs | (chunk_plane(W, p1, own_row, at, chunk, rows, CHUNKS, L[1]) << L[0])
                w = signed_codes(pairs, TILE_N, 4, OFFSET, L)
                block = at * CHUNKS + chunk
                x = tl.load(x_row + block * BLOCK)
                factor = tl.load(S + block.to(tl.int64) * m + own_token)
                for part in tl.static_range(PARTS):
                    s = picked(scale, part, chunk, PARTS, CHUNKS)
                    if L[16]:
                        n = picked(minimum, part, chunk, PARTS, CHUNKS)
                        sums = tl.load(T + (block * PARTS + part).to(tl.int64) * m + own_token)
                    else:
                        n = s
                        sums = factor
                    # A matrix instruction takes 32 codes: those of the other group are zero.
                    if PARTS == 1:
                        own = w
                    elif part == 0:
                        own = tl.where(lower, w, 0)
                    else:
                        own = tl.where(lower, 0, w)
                    acc = block_sum(acc, own, x, s, n, sums, factor, L[16], DRAIN)
    y = Y + token.to(tl.int64)[:, None] * y_stride + (row0 + row)[None, :]
    inside = (token[:, None] < m) & (row[None, :] < rows)
    tl.store(y, tl.trans(acc).to(Y.dtype.element_ty), mask=inside)
    if program == 0:
        tl.store(Executed, tl.full([], BUILD_ID, tl.uint32))
