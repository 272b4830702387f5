"""Codes of a stretch as fp16 pairs, for `triton.gemv_mma`: one routine for each way that layouts hold codes."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from warptile.kernels.triton.gemv_mma.layouts import pair_layout, word_layout
from warptile.kernels.triton.gemv_mma.tensors import along, join4, join8
from warptile.kernels.triton.gemv_mma.trit_codes import trit_pairs
from warptile.layouts.triton.lane_six import six_text
from warptile.layouts.triton.pointwise import signed_levels, typed
from warptile.layouts.triton.scaled_pairs import scaled_pairs

EVICT = gl.constexpr("evict_first")


@gluon.constexpr_function
def nibble_text():
    """PTX: the four pairs of a word of 4-bit codes, times the low half of $5 plus its high half, to $0 .. $3."""
    return """{
    .reg .b16 l, h;
    .reg .b32 f, g, m, a, t;
    mov.b32 {l, h}, $5;
    mov.b32 f, {l, l};
    mov.b32 m, {h, h};
    mov.b32 a, 0x2C002C00;
    mul.rn.f16x2 g, f, a;
    and.b32 t, $4, 0x000F000F;
    fma.rn.f16x2 $0, t, f, m;
    and.b32 t, $4, 0x00F000F0;
    fma.rn.f16x2 $1, t, g, m;
    shr.u32 a, $4, 8;
    and.b32 t, a, 0x000F000F;
    fma.rn.f16x2 $2, t, f, m;
    and.b32 t, a, 0x00F000F0;
    fma.rn.f16x2 $3, t, g, m;
    }"""


@gluon.jit
def nibble_weights(words, factors):
    """Weights of words of 4-bit codes (i32[W, U, R, 4, 4], a word a group): fp16 pairs, i32[W, U, R, 4, 4, 2, 2].

    A code four bits up counts 16 times, so its factor is a sixteenth.
    """
    factors, words = gl.broadcast(factors, words)
    w0, w1, w2, w3 = gl.inline_asm_elementwise(
        nibble_text(), "=r,=r,=r,=r,r,r", [words, factors],
        dtype=(gl.int32, gl.int32, gl.int32, gl.int32), is_pure=True, pack=1,
    )  # fmt: skip
    return join4(w0, w1, w2, w3)


@gluon.jit
def row_parts(LAY: gl.constexpr, room):
    """Rows of dimension 2 as a part and a constant, kept within `room`, the rows from the tile's first to the last that
    planes are laid for."""
    row = along(LAY, 2)
    low = row & 7
    if LAY.shape[2] > 16:
        low += gl.minimum(row & -16, room - 16)
    return low, row & 8


@gluon.jit
def plane_words(
    W, plane, base, rows0, padded, left, BITS: gl.constexpr, WORDS: gl.constexpr, LAY: gl.constexpr, U: gl.constexpr
):
    """i32[W, U, R, 4, WORDS]: each lane's words of a code plane, of BITS bits; 0 for the steps from `left` on.

    An address is the sum of what all threads share, of what a lane adds, and of a constant: one instruction a load.
    """
    PER: gl.constexpr = 4 * WORDS
    ahead = along(LAY, 0) * U + along(LAY, 1)
    mask = None
    other = None
    if left is not None:
        mask = ahead < left
        other = 0
    low, high = row_parts(LAY, padded - rows0)
    P = typed(W, plane, BITS) + (base * padded + rows0) * PER
    P = P + ((ahead * padded + low) * PER + along(LAY, 3) * WORDS)
    return gl.load(P + (high * PER + along(LAY, 4)), mask=mask, other=other, eviction_policy=EVICT).to(gl.int32)


@gluon.jit
def tail_words(W, plane, base, rows0, padded, left, LAY: gl.constexpr, U: gl.constexpr):
    """i32[W, U, R, 4, 1]: the rows' tail words of base-3 codes, the same for each lane of a quad."""
    ahead = along(LAY, 0) * U + along(LAY, 1)
    mask = None
    other = None
    if left is not None:
        mask = ahead < left
        other = 0
    low, high = row_parts(LAY, padded - rows0)
    P = W + plane + (base * padded + rows0) + (ahead * padded + low)
    return gl.load(P + high + along(LAY, 3) * 0, mask=mask, other=other, eviction_policy=EVICT)


@gluon.jit
def load_codes(
    W,
    p0,
    p1,
    p2,
    base,
    rows0,
    padded,
    left,
    L: gl.constexpr,
    WARPS: gl.constexpr,
    N: gl.constexpr,
    U: gl.constexpr,
    R: gl.constexpr,
):
    """Three tensors of code words of a stretch, some of them the same where the layout has fewer."""
    if L[3] != 0:
        N0: gl.constexpr = L[3] // 16
        LAY0: gl.constexpr = word_layout(WARPS, N, U, R, N0)
        LAY1: gl.constexpr = word_layout(WARPS, N, U, R, 1)
        first = plane_words(W, p0, base, rows0, padded, left, 32, N0, LAY0, U)
        second = plane_words(W, p1, base, rows0, padded, left, 32 if L[4] == 16 else 16, 1, LAY1, U)
        third = tail_words(W, p2, base, rows0, padded, left, LAY1, U)
    else:
        B0: gl.constexpr = L[2] * L[0] // 4
        LAYB: gl.constexpr = word_layout(WARPS, N, U, R, B0)
        first = plane_words(W, p0, base, rows0, padded, left, 32, B0, LAYB, U)
        second = first
        if L[1] != 0:
            B1: gl.constexpr = L[2] * L[1] // 4
            LAYC: gl.constexpr = word_layout(WARPS, N, U, R, B1)
            second = plane_words(W, p1, base, rows0, padded, left, 32, B1, LAYC, U)
        third = first
    return first, second, third


@gluon.jit
def plane_pairs(
    words,
    B: gl.constexpr,
    SLOTS_ALL: gl.constexpr,
    WARPS: gl.constexpr,
    N: gl.constexpr,
    U: gl.constexpr,
    R: gl.constexpr,
):
    """i32[W, U, R, 4, SLOTS_ALL]: codes of B bits, e = 0 in the low half and e = 1 in the high half of each."""
    SLOTS: gl.constexpr = 16 // B
    LAY: gl.constexpr = pair_layout(WARPS, N, U, R, SLOTS_ALL // SLOTS, SLOTS)
    words = gl.convert_layout(words, gl.SliceLayout(5, LAY), assert_trivial=True)
    found = (gl.expand_dims(words, 5) >> (along(LAY, 5) * B)) & (((1 << B) - 1) * 0x00010001)
    OUT: gl.constexpr = pair_layout(WARPS, N, U, R, 1, SLOTS_ALL)
    found = gl.reshape(found, [WARPS, U, R, 4, 1, SLOTS_ALL])
    return gl.convert_layout(found, OUT, assert_trivial=True)


@gluon.jit
def six_pairs(
    first, second, SLOTS_ALL: gl.constexpr, WARPS: gl.constexpr, N: gl.constexpr, U: gl.constexpr, R: gl.constexpr
):
    """i32[W, U, R, 4, 1, SLOTS_ALL]: as `plane_pairs`, of four bits in one plane and two above them in another."""
    WORDS: gl.constexpr = SLOTS_ALL // 8
    LAY: gl.constexpr = word_layout(WARPS, N, U, R, WORDS)
    a, b = gl.split(gl.reshape(first, [WARPS, U, R, 4, WORDS, 2]))
    a = gl.convert_layout(a, LAY, assert_trivial=True)
    b = gl.convert_layout(b, LAY, assert_trivial=True)
    second = gl.convert_layout(second, LAY, assert_trivial=True)
    s0, s1, s2, s3, s4, s5, s6, s7 = gl.inline_asm_elementwise(
        six_text(), "=r,=r,=r,=r,=r,=r,=r,=r,r,r,r", [a, b, second], dtype=(gl.int32,) * 8, is_pure=True, pack=1
    )
    OUT: gl.constexpr = pair_layout(WARPS, N, U, R, 1, SLOTS_ALL)
    found = gl.reshape(join8(s0, s1, s2, s3, s4, s5, s6, s7), [WARPS, U, R, 4, 1, SLOTS_ALL])
    return gl.convert_layout(found, OUT, assert_trivial=True)


@gluon.jit
def weights_of(
    first,
    second,
    third,
    factors,
    L: gl.constexpr,
    WARPS: gl.constexpr,
    N: gl.constexpr,
    U: gl.constexpr,
    R: gl.constexpr,
    LEAN: gl.constexpr,
):
    """fp16 pairs of a stretch's weights over the rows' units, i32[W, U, R, 4, groups, slots a group]."""
    GROUPS: gl.constexpr = L[7]
    SLOTS: gl.constexpr = 4 * L[2]
    OUT: gl.constexpr = pair_layout(WARPS, N, U, R, GROUPS, SLOTS // GROUPS)
    if L[0] == 4 and L[1] == 0 and L[10] != 0 and GROUPS == L[2]:
        LAY: gl.constexpr = word_layout(WARPS, N, U, R, GROUPS)
        own = gl.convert_layout(factors, LAY, assert_trivial=True)
        words = gl.convert_layout(first, LAY, assert_trivial=True)
        found = gl.reshape(nibble_weights(words, own), [WARPS, U, R, 4, GROUPS, 4])
        return gl.convert_layout(found, OUT, assert_trivial=True)
    if L[3] != 0:
        pairs = trit_pairs(first, second, third, L, WARPS, N, U, R)
    elif LEAN != 0 and L[0] == 4 and L[1] == 2 and SLOTS % 8 == 0:
        pairs = six_pairs(first, second, SLOTS, WARPS, N, U, R)
    else:
        pairs = plane_pairs(first, L[0], SLOTS, WARPS, N, U, R)
        if L[1] != 0:
            pairs = pairs | (plane_pairs(second, L[1], SLOTS, WARPS, N, U, R) << L[0])
    pairs = gl.convert_layout(gl.reshape(pairs, [WARPS, U, R, 4, GROUPS, SLOTS // GROUPS]), OUT, assert_trivial=True)
    factors = gl.expand_dims(gl.convert_layout(factors, gl.SliceLayout(5, OUT), assert_trivial=True), 5)
    if L[10] == 0:
        pairs = signed_levels(pairs, L)
    factors, pairs = gl.broadcast(factors, pairs)
    return scaled_pairs(pairs, factors, "f16x2")
