"""Device decoders in fp16 pairs, over each row's unit; tiles and arguments are those of `decode`."""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.decode import code_pairs, codes_and_scales, half_bits, load_plane, look_up, six_bit_words


@triton.jit
def half_units(exponent):
    """Two fp16 powers of two whose product is the unit of the biased exponent i32[R], where fp16 values below 64 times
    the unit are neither 0 nor beyond fp16."""
    whole_part = exponent - 127
    first = tl.minimum(tl.maximum(whole_part, -14), 15)
    second = tl.minimum(tl.maximum(whole_part - first, -14), 15)
    return (
        ((first + 15) << 10).to(tl.uint16).to(tl.float16, bitcast=True),
        ((second + 15) << 10).to(tl.uint16).to(tl.float16, bitcast=True),
    )


@triton.jit
def doubled_half(values):
    """fp32 rounded to fp16, in both halves of an i32."""
    return tl.inline_asm_elementwise(
        "cvt.rn.f16x2.f32 $0, $1, $1;", "=r,r", [values], dtype=tl.int32, is_pure=True, pack=1
    )


@triton.jit
def halves(words):
    """The two fp16 of each i32, along a new last axis."""
    low, high = tl.inline_asm_elementwise(
        "mov.b32 {$0, $1}, $2;", "=h,=h,r", [words], dtype=(tl.float16, tl.float16), is_pure=True, pack=1
    )
    return tl.join(low, high)


@triton.jit
def multiply_add_halves(a, b, c):
    """a * b + c of two fp16 in each i32, each rounded once."""
    return tl.inline_asm_elementwise(
        "fma.rn.f16x2 $0, $1, $2, $3;", "=r,r,r,r", [a, b, c], dtype=tl.int32, is_pure=True, pack=1
    )


@triton.jit
def subnormal(code):
    """Integers 0 <= code < 1024 read as fp16: code * 2^-24."""
    return code.to(tl.uint16).to(tl.float16, bitcast=True)


@triton.jit
def half_levels(code, L: tl.constexpr):
    """The codebook's values of codes 0..15 as fp16 (exact), without a conversion instruction."""
    return (look_up(code, L) + 0x6480).to(tl.uint16).to(tl.float16, bitcast=True) - 1152.0


@triton.jit
def multiply_halves(a, b):
    """a * b of two fp16 in each i32, rounded once."""
    return tl.inline_asm_elementwise("mul.rn.f16x2 $0, $1, $2;", "=r,r,r", [a, b], dtype=tl.int32, is_pure=True, pack=1)


@triton.jit
def half_minifloats(pairs):
    """Two E2M1 codes in each i32 as two fp16, 2^-15 times the codebook's (doubled) values: E2M1's exponent bits are the
    lowest two of fp16's, its subnormal is one of fp16."""
    return ((pairs & 0x00080008) << 12) | ((pairs & 0x00070007) << 9)


@triton.jit
def half_factors(both, low, high, up, down):
    """(up d sc, -down dmin mn), each rounded once to fp16 and in both halves of an i32[R, 1, groups].

    low, high: words with sc in the low and mn in the high half, their low nibbles and, 4 bits up, their high pairs of
    bits, between bits of others. sc | mn << 16 becomes fp16 by or-ing into 1024 and 1: sc + 1024 and 1 + mn / 1024,
    both exact. d and dmin are kept within fp16, as sc and mn may be 0.
    """
    pair = tl.inline_asm_elementwise(
        "cvt.rn.satfinite.f16x2.f32 $0, $1, $2;", "=r,r,r",
        [half_bits((both >> 16) & 0xFFFF) * (-1024.0 * down), half_bits(both & 0xFFFF) * up],
        dtype=tl.int32, is_pure=True, pack=1,
    )  # fmt: skip
    return tl.inline_asm_elementwise(
        """{
        .reg .b32 a, b;
        .reg .b16 l, h;
        mov.b32 b, 0x3C006400;
        lop3.b32 a, $2, 0x000F000F, b, 0xEA;
        lop3.b32 a, $3, 0x00300030, a, 0xEA;
        mov.b32 b, 0xBC00E400;
        add.rn.f16x2 a, a, b;
        mul.rn.f16x2 a, a, $4;
        mov.b32 {l, h}, a;
        mov.b32 $0, {l, l};
        mov.b32 $1, {h, h};
        }""",
        "=r,=r,r,r,r", [low, high, pair], dtype=(tl.int32, tl.int32), is_pure=True, pack=1,
    )  # fmt: skip


@triton.constexpr_function
def minus_offset(L):
    """Minus 2^-24 times the offset of codes before they are multiplied, in both halves of an i32: a whole number read
    as subnormal fp16 is that number times 2^-24."""
    return (0x8000 | int(L[9] / L[10])) * 0x00010001 - (1 << 32)


@triton.constexpr_function
def byte_factors_text():
    """PTX: four signed bytes of $8 times the halves of $9, each in both halves of $0 to $3; those times the halves of
    $10 in $4 to $7."""
    return """{
    .reg .b32 w, a, b, t;
    .reg .b16 l, h;
    xor.b32 w, $8, 0x80808080;
    mov.b32 t, 0x64646464;
    prmt.b32 a, w, t, 0x4140;
    prmt.b32 b, w, t, 0x4342;
    mov.b32 t, 0xE480E480;
    add.rn.f16x2 a, a, t;
    add.rn.f16x2 b, b, t;
    mul.rn.f16x2 a, a, $9;
    mul.rn.f16x2 b, b, $9;
    mov.b32 {l, h}, a;
    mov.b32 $0, {l, l};
    mov.b32 $1, {h, h};
    mov.b32 {l, h}, b;
    mov.b32 $2, {l, l};
    mov.b32 $3, {h, h};
    mul.rn.f16x2 a, a, $10;
    mul.rn.f16x2 b, b, $10;
    mov.b32 {l, h}, a;
    mov.b32 $4, {l, l};
    mov.b32 $5, {h, h};
    mov.b32 {l, h}, b;
    mov.b32 $6, {l, l};
    mov.b32 $7, {h, h};
    }"""


@triton.jit
def byte_factors(W, s0, s1, row, at, rows, up, L: tl.constexpr):
    """(up d sc, -up d sc offset / 2^24) of kind k8, each in both halves of an i32[R, 4, 8].

    A byte sc + 128 becomes fp16 by a permutation into 1024's: 1024 + 128 + sc, exact. up d is kept within fp16, as sc
    may be 0; it is rounded once, and so are both products. Two scales at a time.
    """
    d = half_bits(load_plane(W, s0, row, at, rows, 32 * L[2], 16, L[8], 1)) * up
    both = tl.inline_asm_elementwise(
        "cvt.rn.satfinite.f16x2.f32 $0, $1, $1;", "=r,r", [d], dtype=tl.int32, is_pure=True, pack=1
    )
    words = load_plane(W, s1, row, at, rows, 32 * L[2], 32, 32 * L[2], 2)
    f0, f1, f2, f3, a0, a1, a2, a3 = tl.inline_asm_elementwise(
        byte_factors_text(),
        "=r,=r,=r,=r,=r,=r,=r,=r,r,r,r", [words, both, words * 0 + minus_offset(L)],
        dtype=(tl.int32, tl.int32, tl.int32, tl.int32, tl.int32, tl.int32, tl.int32, tl.int32), is_pure=True, pack=1,
    )  # fmt: skip
    factor = tl.join(tl.join(f0, f2), tl.join(f1, f3))
    add = tl.join(tl.join(a0, a2), tl.join(a1, a3))
    return tl.reshape(factor, (words.shape[0], 4, 8)), tl.reshape(add, (words.shape[0], 4, 8))


@triton.jit
def decode_half(
    W, p0, p1, p2, p3, p4, p5, row, at, rows, up, down, R: tl.constexpr, L: tl.constexpr, PTX: tl.constexpr,
    PAIRED: tl.constexpr = False,
):  # fmt: skip
    """A decoded tile over the rows' units, fp16: codes, read as subnormal fp16, times 2^24 scale / u, less minimum /
    u, in one fused multiply-add, two at a time; a codebook's values times scale / u.

    Rounded: the scale and the minimum to fp16, then the result. PAIRED, for PTX: scales of a byte are made two at a
    time, in fp16 from the start.
    """
    SLOTS: tl.constexpr = 4 * L[2]
    GROUPS: tl.constexpr = L[7]
    if PTX and L[6] == "k6min":
        pairs, _ = code_pairs(W, p0, p1, p2, row, at, rows, R, L)
        pairs = tl.reshape(pairs, (R, 4, GROUPS, SLOTS // GROUPS))
        if L[15] == 1:
            both, low, high = six_bit_words(W, p1, row, at, rows, L)
        else:
            both, low, high = six_bit_words(W, p2, row, at, rows, L)
        factor, add = half_factors(both, low, high, up, down)
        return halves(multiply_add_halves(pairs, factor[:, :, :, None], add[:, :, :, None]))
    if PTX and PAIRED and L[6] == "k8":
        pairs, _ = code_pairs(W, p0, p1, p2, row, at, rows, R, L)
        pairs = tl.reshape(pairs, (R, 4, GROUPS, SLOTS // GROUPS))
        if L[15] == 1:
            factor, add = byte_factors(W, p1, p2, row, at, rows, up, L)
        else:
            factor, add = byte_factors(W, p2, p3, row, at, rows, up, L)
        return halves(multiply_add_halves(pairs, factor[:, :, :, None], add[:, :, :, None]))
    pairs, scale, minimum = codes_and_scales(W, p0, p1, p2, p3, p4, p5, row, at, rows, up, down, R, L)
    pairs = tl.reshape(pairs, (R, 4, GROUPS, SLOTS // GROUPS))
    if L[10] == 0 and L[11] == 0x03020100 and L[12] == 0x0C080604 and L[13] == -33620224 and L[14] == -185009412:
        bits = half_minifloats(pairs)
        if PTX:
            found = halves(multiply_halves(bits, doubled_half(scale * (1.0 / 512.0))[:, :, :, None]))
        else:
            factor = (scale * (1.0 / 512.0)).to(tl.float16)[:, :, :, None]
            found = tl.join(subnormal(bits & 0xFFFF) * factor, subnormal((bits >> 16) & 0xFFFF) * factor)
    elif L[10] == 0:
        factor = (scale * (1.0 / 16777216.0)).to(tl.float16)[:, :, :, None]
        found = tl.join(half_levels(pairs & 0xFFFF, L) * factor, half_levels((pairs >> 16) & 0xFFFF, L) * factor)
    else:
        shift = minimum
        if L[9] != 0:
            shift = shift + scale * (L[9] / (L[10] * 16777216.0))
        if PTX:
            factor = doubled_half(scale)[:, :, :, None]
            add = doubled_half(-shift)[:, :, :, None]
            found = halves(multiply_add_halves(pairs, factor, add))
        else:
            factor = scale.to(tl.float16)[:, :, :, None]
            add = (-shift).to(tl.float16)[:, :, :, None]
            found = tl.join(subnormal(pairs & 0xFFFF) * factor + add, subnormal((pairs >> 16) & 0xFFFF) * factor + add)
    return found
