"""Scales of a stretch as fp16 factors, for `triton.gemv_mma`: each lane of a quad makes a part and passes it on."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from warptile.kernels.triton.gemv_mma.codes import row_parts
from warptile.kernels.triton.gemv_mma.layouts import block_layout, scale_layout, word_layout
from warptile.kernels.triton.gemv_mma.tensors import along, join4
from warptile.layouts.triton.decode import half_bits
from warptile.layouts.triton.pointwise import scale_words, scales_of


@gluon.jit
def load_scales(
    W, s0, s1, s2, base, unit, rows0, padded, left,
    L: gl.constexpr, WARPS: gl.constexpr, N: gl.constexpr, U: gl.constexpr, R: gl.constexpr,
):  # fmt: skip
    """Three tensors of scale words of a stretch. Kind k6min, four words a superblock: the first alone, loaded whole."""
    PARTS: gl.constexpr = L[8] // (32 * L[2]) if L[8] > 32 * L[2] else 1
    if L[6] == "k6min":
        LAYB: gl.constexpr = block_layout(WARPS, N, U // PARTS if U >= PARTS else 1, R)
        ahead = along(LAYB, 0) * U // PARTS + along(LAYB, 1)
        low, high = row_parts(LAYB, padded - rows0)
        P = W + s0 + (unit * padded + rows0) * 4
        P = P + (ahead * padded + low) * 4
        mask = None
        other = None
        if left is not None:
            mask = ahead * PARTS < left
            other = 0
        a = gl.load(P + (high * 4 + along(LAYB, 3)), mask=mask, other=other)
        b = a
        c = a
    else:
        LAY: gl.constexpr = scale_layout(WARPS, N, U, R, L[7])
        ahead = along(LAY, 0) * U + along(LAY, 1)
        low, high = row_parts(LAY, padded - rows0)
        mask = None
        other = None
        if left is not None:
            mask = ahead < left
            other = 0
        a, b, c = scale_words(
            W, s0, s1, s2, base, unit, rows0, ahead, low, high, along(LAY, 3), ahead % PARTS, padded, mask, other, L
        )
    return a, b, c


@gluon.jit
def unit_factors(
    units, rows0, rows, L: gl.constexpr, WARPS: gl.constexpr, N: gl.constexpr, U: gl.constexpr, R: gl.constexpr
):
    """(2^24 MUL / u, 1 / u) of the rows' units u, fp32[1, 1, R, 1], where `factors_of` wants them."""
    if L[6] == "k6min":
        PARTS: gl.constexpr = L[8] // (32 * L[2])
        LAY: gl.constexpr = block_layout(WARPS, N, U // PARTS if U >= PARTS else 1, R)
    else:
        LAY: gl.constexpr = scale_layout(WARPS, N, U, R, L[7])
    exponent = gl.load(units + gl.minimum(rows0 + along(LAY, 2), rows - 1)).to(gl.int32)
    up = ((278 - exponent) << 23).to(gl.float32, bitcast=True) * (L[10] if L[10] != 0 else 1)
    return up, ((254 - exponent) << 23).to(gl.float32, bitcast=True)


@gluon.jit
def block_factors(
    words, up, down, L: gl.constexpr, WARPS: gl.constexpr, N: gl.constexpr, U: gl.constexpr, R: gl.constexpr
):
    """`factors_of` for kind k6min: one lane a group, from the four words i32[W, blocks, R, 4].

    sc | mn << 16 becomes fp16 by or-ing into 1024 and 1: sc + 1024 and 1 + mn / 1024, both exact. up d and 1024 down
    dmin, kept within fp16 as sc and mn may be 0, are rounded once, and once more their products with sc and mn.
    """
    PARTS: gl.constexpr = L[8] // (32 * L[2])
    LAY: gl.constexpr = scale_layout(WARPS, N, U, R, L[7])
    OWN: gl.constexpr = gl.SliceLayout(3, LAY)
    BLOCKS: gl.constexpr = U // PARTS if U >= PARTS else 1
    even, odd = gl.split(gl.reshape(words, [WARPS, BLOCKS, R, 2, 2]))
    both, second = gl.split(even)
    first, high = gl.split(odd)
    LAYB: gl.constexpr = block_layout(WARPS, N, BLOCKS, R)
    both = gl.expand_dims(gl.convert_layout(both, gl.SliceLayout(3, LAYB), assert_trivial=True), 3)
    pair = gl.inline_asm_elementwise(
        "cvt.rn.satfinite.f16x2.f32 $0, $1, $2;", "=r,r,r",
        [half_bits((both >> 16) & 0xFFFF) * (-1024.0 * down), half_bits(both & 0xFFFF) * up],
        dtype=gl.int32, is_pure=True, pack=1,
    )  # fmt: skip
    pair = gl.reshape(pair, [WARPS, BLOCKS, R])
    if U >= PARTS:
        low = gl.reshape(gl.permute(gl.join(first, second), (0, 1, 3, 2)), [WARPS, U, R])
        high = gl.reshape(gl.permute(gl.join(high, high), (0, 1, 3, 2)), [WARPS, U, R])
        pair = gl.reshape(gl.permute(gl.join(pair, pair), (0, 1, 3, 2)), [WARPS, U, R])
        low = gl.convert_layout(low, OWN, assert_trivial=True)
        high = gl.convert_layout(high, OWN, assert_trivial=True)
        pair = gl.convert_layout(pair, OWN, assert_trivial=True)
    else:
        low = gl.convert_layout(first, OWN, assert_trivial=True)
        high = gl.convert_layout(high, OWN, assert_trivial=True)
        pair = gl.convert_layout(pair, OWN, assert_trivial=True)
        of_odd = gl.convert_layout(second, OWN, assert_trivial=True)
    low = gl.expand_dims(low, 3)
    high = gl.expand_dims(high, 3)
    pair = gl.expand_dims(pair, 3)
    part = (along(LAY, 0) * U + along(LAY, 1)) % PARTS
    if U < PARTS:
        low = gl.where(part == 0, low, gl.expand_dims(of_odd, 3))
    group = along(LAY, 3)
    low = low >> (4 * group)
    high = high >> (8 * part + 2 * group)
    pair = gl.broadcast(pair, low)[0]
    return gl.inline_asm_elementwise(
        """{
        .reg .b32 a, b, c;
        mov.b32 b, 0x3C006400;
        lop3.b32 a, $1, 0x000F000F, b, 0xEA;
        and.b32 c, $2, 0x00030003;
        mad.lo.u32 a, c, 16, a;
        mov.b32 b, 0xBC00E400;
        add.rn.f16x2 a, a, b;
        mul.rn.f16x2 $0, a, $3;
        }""",
        "=r,r,r,r", [low, high, pair], dtype=gl.int32, is_pure=True, pack=1,
    )  # fmt: skip


@gluon.constexpr_function
def eight_text():
    """PTX: the signed byte $1 times both halves of $2, to $0.

    With its highest bit the other way round, it becomes fp16 by or-ing into 1024 and 1: 1152 + sc and 1.125 + sc /
    1024.
    """
    return """{
    .reg .b32 a, b;
    prmt.b32 a, $1, 0, 0x4040;
    xor.b32 a, a, 0x3C806480;
    mov.b32 b, 0xBC80E480;
    add.rn.f16x2 a, a, b;
    mul.rn.f16x2 $0, a, $2;
    }"""


@gluon.jit
def eight_factors(first, second, up, L: gl.constexpr):
    """`factors_of` for kind k8: up d and the shift's part of it times 1024 are rounded once, kept within fp16 as sc may
    be 0, and once more their products with sc and sc / 1024."""
    scale = half_bits(first) * up
    shift = scale * (-1024.0 * L[9] / (L[10] * 16777216.0))
    pair = gl.inline_asm_elementwise(
        "cvt.rn.satfinite.f16x2.f32 $0, $2, $1;", "=r,r,r", [scale, shift], dtype=gl.int32, is_pure=True, pack=1
    )
    second, pair = gl.broadcast(second, pair)
    return gl.inline_asm_elementwise(eight_text(), "=r,r,r", [second, pair], dtype=gl.int32, is_pure=True, pack=1)


@gluon.jit
def factors_of(
    a, b, c, up, down, L: gl.constexpr, WARPS: gl.constexpr, N: gl.constexpr, U: gl.constexpr, R: gl.constexpr,
    LEAN: gl.constexpr,
):  # fmt: skip
    """For each group fp16 numbers in the low and high half of an i32: what a code is multiplied by and what is added,
    both over the row's unit. i32[W, U, R, 4, groups], the same for each lane of a quad."""
    GROUPS: gl.constexpr = L[7]
    PARTS: gl.constexpr = L[8] // (32 * L[2]) if L[8] > 32 * L[2] else 1
    LAY: gl.constexpr = scale_layout(WARPS, N, U, R, GROUPS)
    OUT: gl.constexpr = word_layout(WARPS, N, U, R, GROUPS)
    if L[6] == "k6min":
        own = block_factors(a, up, down, L, WARPS, N, U, R)
    elif LEAN != 0 and L[6] == "k8" and L[10] != 0:
        own = eight_factors(a, b, up, L)
    else:
        part = (along(LAY, 0) * U + along(LAY, 1)) % PARTS
        scale, minimum = scales_of(a, b, c, along(LAY, 3), part, up, down, L)
        if L[10] == 0:
            scale = scale * (1.0 / 16777216.0)
            shift = minimum + scale * 0.0
        else:
            shift = minimum + scale * (L[9] / (L[10] * 16777216.0))
            if L[3] != 0:
                scale = scale * (1.0 / 256.0)
        own = gl.inline_asm_elementwise(
            "cvt.rn.f16x2.f32 $0, $2, $1;", "=r,r,r", [scale, -shift], dtype=gl.int32, is_pure=True, pack=1
        )
    if GROUPS < 4:
        ANY: gl.constexpr = gl.SliceLayout(3, OUT)
        passed = gl.expand_dims(gl.convert_layout(own, ANY, assert_trivial=True), 3)
        lane = along(OUT, 3)
        passed, _ = gl.broadcast(passed, lane)
    else:
        w0, w1, w2, w3 = gl.inline_asm_elementwise(
            """
            shfl.sync.idx.b32 $0, $4, 0, 0x1C1F, 0xFFFFFFFF;
            shfl.sync.idx.b32 $1, $4, 1, 0x1C1F, 0xFFFFFFFF;
            shfl.sync.idx.b32 $2, $4, 2, 0x1C1F, 0xFFFFFFFF;
            shfl.sync.idx.b32 $3, $4, 3, 0x1C1F, 0xFFFFFFFF;
            """,
            "=r,=r,=r,=r,r", [own], dtype=(gl.int32, gl.int32, gl.int32, gl.int32), is_pure=True, pack=1,
        )  # fmt: skip
        # What group g of the tensor now says of four lanes' groups is the same for each of them.
        passed = gl.reshape(join4(w0, w1, w2, w3), [WARPS, U, R, GROUPS // 4, 4, 4])
        passed = gl.reshape(gl.permute(passed, (0, 1, 2, 4, 3, 5)), [WARPS, U, R, 4, GROUPS])
    return gl.convert_layout(passed, OUT, assert_trivial=True)
