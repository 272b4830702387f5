"""PTX of `triton.gemv_trits`: base-3 bytes and fixed-point activations, both as bytes of int8 matrix instructions.

Digit n of byte b is (3 s_n - s_{n+1}) / 256, where s_n = 3^n b mod 256, so a digit less one is (3 t_n - t_{n+1}) / 256
of t_n = s_n - 128, a signed byte, and the sum over a byte's digits

    sum_n (digit_n - 1) x_n = (sum_{n = 0 .. 5} t_n (3 x_n - x_{n-1})) / 256,   x_{-1} = x_5 = 0

takes no digit apart. The left factor is t: a word as it lies for n = 0, and, as 128 * 3 = 128 modulo 256, its bytes in
16-bit halves times 3^n for the others; the right one is 3 x_n - x_{n-1} in whole numbers below 2^22, as three signed
bytes in columns of their own. Of a block of 128 a lane has ten words: six of its four bytes of 16, three of its two
bytes of eight, one of its digit of the last two.
"""

from __future__ import annotations

from triton.experimental import gluon

WORDS = 10
PLANES = 3
SLOTS = 16
# 1.5 * 2^23, whose bits count whole numbers.
ONES = 0x4B400000
# A number plus this is three bytes, each 128 more than the signed byte meant.
BIASED = 0x808080
# Exponents, biased: whole numbers below 2^20 of any magnitude, and the largest factor.
TO_WHOLE, MOST_FACTOR = 273, 240


@gluon.constexpr_function
def constraints(kind, count):
    """`count` operands of one kind."""
    return ",".join([kind] * count)


@gluon.constexpr_function
def block_sums(words, digits):
    """PTX: `words` left factors p0, .. and q0, .. of the type `digits` times x in $10 and on, $0..$3 the sums so far
    with them added, each times its row's scale. After x, operands are what a unit of it counts (f32), 3^c, and the four
    sums so far (f32)."""
    unit, sums = 10 + words, 12 + words
    lines = [f"mov.b32 c{i}, {ONES:#x};" for i in range(4)]
    for n in range(0, words, 2):
        lines.append(
            f"mma.sync.aligned.m16n8k32.row.col.s32.{digits}.s8.s32 {{c0, c1, c2, c3}}, "
            f"{{p{n}, q{n}, p{n + 1}, q{n + 1}}}, {{${10 + n}, ${11 + n}}}, {{c0, c1, c2, c3}};"
        )
    for tail, name in (("$8", "f"), ("$9", "g")):
        lines += [f"mov.b32 {{low, high}}, {tail};", f"cvt.f32.f16 {name}, high;"]
        lines.append(f"mul.rn.f32 {name}, {name}, ${unit};")
    for i in range(4):
        lines += [f"mov.b32 t, c{i};", "sub.rn.f32 t, t, 0f4B400000;"]
        lines.append(f"fma.rn.f32 ${i}, t, {'f' if i < 2 else 'g'}, ${sums + i};")
    return lines


@gluon.constexpr_function
def product_text():
    """$0..$3 (f32): sums over rows r and r + 8 of columns 2 c and 2 c + 1, a block's products added.

    $4..$9: the rows' words of four bytes, of two bytes, and tails; $10..$19: x; $20 (f32): what a unit of x counts;
    $21: 3^c; $22..$25 (f32): the sums so far.
    """
    lines = ["{", ".reg .b32 p<10>, q<10>, e, o, c<4>;", ".reg .b16 low, high;", ".reg .f32 f, g, t;"]
    for name, wide, narrow, tail in (("p", "$4", "$6", "$8"), ("q", "$5", "$7", "$9")):
        lines += [
            f"xor.b32 {name}0, {wide}, 0x80808080;",
            f"and.b32 e, {name}0, 0x00FF00FF;",
            f"prmt.b32 o, {name}0, 0, 0x4341;",
        ]
        for n in range(1, 6):
            lines += ["mul.lo.u32 e, e, 3;", "mul.lo.u32 o, o, 3;", f"prmt.b32 {name}{n}, e, o, 0x6240;"]
        lines += [f"prmt.b32 e, {narrow}, 0, 0x4140;", "xor.b32 e, e, 0x00800080;"]
        for n in range(3):
            lines += ["mul.lo.u32 o, e, 3;", f"prmt.b32 {name}{6 + n}, e, o, 0x6420;"]
            lines += ["mul.lo.u32 e, o, 3;"] if n < 2 else []
        lines += [f"prmt.b32 e, {tail}, 0, 0x4140;", "xor.b32 e, e, 0x00800080;", "mul.lo.u32 e, e, $21;"]
        lines += ["mul.lo.u32 o, e, 3;", f"prmt.b32 {name}9, e, o, 0x6420;"]
    return "\n".join([*lines, *block_sums(WORDS, "s8"), "}"])


@gluon.constexpr_function
def whole_numbers(brain, out, to_whole, unit):
    """PTX: ONES plus the 32 numbers of pairs $(out + 1), .. as whole numbers, to b0, .., and what a unit of them counts
    to $out, NaN where a number is not finite. to_whole, unit: biased exponents that, less the largest number's, are the
    factor's and, less the factor's, what $out holds. z0 to z3, u and v are the caller's."""
    lines = [
        ".reg .b32 b<32>, m, n, s, z<4>, u, v;",
        ".reg .b16 low, high;",
        ".reg .f32 f, g;",
        ".reg .pred wild;",
    ]
    for slot in range(SLOTS):
        lines.append(f"and.b32 {'n' if slot else 'm'}, ${out + 1 + slot}, 0x7FFF7FFF;")
        lines += ["max.u16x2 m, m, n;"] if slot else []
    for other in (1, 2):
        lines += [f"shfl.sync.bfly.b32 n, m, {other}, 0x1F, 0xFFFFFFFF;", "max.u16x2 m, m, n;"]
    lines += ["shr.u32 n, m, 16;", "and.b32 m, m, 0xFFFF;", "max.u32 m, m, n;"]
    if brain:
        lines.append("shl.b32 m, m, 16;")
    else:
        lines += ["cvt.u16.u32 low, m;", "cvt.f32.f16 f, low;", "mov.b32 m, f;"]
    lines += ["shr.u32 m, m, 23;", "setp.ge.u32 wild, m, 255;", f"sub.s32 m, {to_whole}, m;"]
    lines += [f"min.s32 m, m, {MOST_FACTOR};", "shl.b32 s, m, 23;", "mov.b32 g, s;"]
    lines += [f"sub.s32 m, {unit}, m;", "shl.b32 m, m, 23;", "selp.b32 m, 0x7FC00000, m, wild;", f"mov.b32 ${out}, m;"]
    for slot in range(SLOTS):
        for half in range(2):
            source = f"${out + 1 + slot}"
            if brain and half:
                lines += [f"and.b32 n, {source}, 0xFFFF0000;", "mov.b32 f, n;"]
            elif brain:
                lines += [f"shl.b32 n, {source}, 16;", "mov.b32 f, n;"]
            else:
                lines += [f"mov.b32 {{low, high}}, {source};", f"cvt.f32.f16 f, {('low', 'high')[half]};"]
            lines += ["fma.rn.f32 f, f, g, 0f4B400000;", f"mov.b32 b{2 * slot + half}, f;"]
    return lines


@gluon.constexpr_function
def staging_text(brain):
    """$0..$29: the ten words of a lane for each of three planes, word by word; $30 (f32): what a unit counts, over 256,
    NaN where a number is not finite. $31..$46: the lane's 16 pairs of fp16, or bf16 where `brain`."""
    out = WORDS * PLANES
    lines = ["{", *whole_numbers(brain, out, TO_WHOLE, 246)]

    def difference(to, new, old):
        constant = BIASED - (3 * ONES if new is not None else 0) + (ONES if old is not None else 0)
        if new is None:
            lines.append(f"sub.s32 {to}, {constant & 0xFFFFFFFF:#x}, b{old};")
            return
        lines.append(f"mad.lo.s32 {to}, b{new}, 3, {constant & 0xFFFFFFFF:#x};")
        if old is not None:
            lines.append(f"sub.s32 {to}, {to}, b{old};")

    def element(slot, half, inside):
        return 2 * slot + half if inside else None

    for word in range(WORDS):
        if word < 6:
            for byte in range(4):
                p, half = byte % 2, byte // 2
                new, old = element(2 * word + p, half, word < 5), element(2 * word - 2 + p, half, word > 0)
                difference(f"z{byte}", new, old)
        elif word < 9:
            for byte in range(4):
                n, half = 2 * (word - 6) + byte // 2, byte % 2
                difference(f"z{byte}", element(10 + n, half, n < 5), element(9 + n, half, n > 0))
        else:
            for byte in range(4):
                x = 2 * 15 + byte % 2
                difference(f"z{byte}", x if byte < 2 else None, None if byte < 2 else x)
        lines += ["prmt.b32 u, z0, z1, 0x5140;", "prmt.b32 v, z2, z3, 0x5140;"]
        for plane, pick in ((0, "0x5410"), (1, "0x7632")):
            lines += [f"prmt.b32 n, u, v, {pick};", f"xor.b32 ${PLANES * word + plane}, n, 0x80808080;"]
        lines += ["prmt.b32 u, z0, z1, 0x0062;", "prmt.b32 v, z2, z3, 0x0062;", "prmt.b32 n, u, v, 0x5410;"]
        lines.append(f"xor.b32 ${PLANES * word + 2}, n, 0x80808080;")
    return "\n".join([*lines, "}"])
