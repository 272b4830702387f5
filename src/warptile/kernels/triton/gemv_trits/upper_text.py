"""PTX of `triton.gemv_trits` with `upper`: base-3 bytes met by upper bytes of products.

With h_n = floor(3^n b / 256) of a byte b, its digit n is h_{n+1} - 3 h_n, so the sum over a byte's five digits

    sum_n digit_n x_n = sum_{n = 1 .. 5} h_n (x_{n-1} - 3 x_n),   x_5 = 0

takes no digit apart: two bytes in 16-bit halves times 3^n have both h_n as their upper bytes. Such a word is the left
factor as it is; the right one is 0 where the lower bytes meet it, and x_{n-1} - 3 x_n elsewhere, in whole numbers below
2^21 as three signed bytes in columns of their own. Of a block of 128 a lane has 18 words: ten of its four bytes of 16,
five of its two bytes of eight, two of its digit of the last two, and one of ones, which takes the sum of x off, as a
weight is its digit less one.
"""

from __future__ import annotations

from triton.experimental import gluon

from warptile.kernels.triton.gemv_trits.device_text import BIASED, ONES, PLANES, block_sums, whole_numbers

WORDS = 18
# Biased exponent: whole numbers below 2^19 of any magnitude.
TO_WHOLE = 272


@gluon.constexpr_function
def upper_product_text():
    """$0..$3 (f32): sums over rows r and r + 8 of columns 2 c and 2 c + 1, a block's products added.

    $4..$9: the rows' words of four bytes, of two bytes, and tails; $10..$27: x; $28 (f32): what a unit of x counts;
    $29: 3^c; $30..$33 (f32): the sums so far.
    """
    lines = ["{", ".reg .b32 p<18>, q<18>, s, c<4>;", ".reg .b16 low, high;", ".reg .f32 f, g, t;"]
    for name, wide, narrow, tail in (("p", "$4", "$6", "$8"), ("q", "$5", "$7", "$9")):
        for first, source, pick in ((0, wide, "0x4240"), (5, wide, "0x4341"), (10, narrow, "0x4140")):
            lines.append(f"prmt.b32 s, {source}, 0, {pick};")
            lines += [f"mul.lo.u32 {name}{first + n}, s, {3 ** (n + 1)};" for n in range(5)]
        lines += [f"prmt.b32 s, {tail}, 0, 0x4140;", f"mul.lo.u32 {name}15, s, $29;"]
        lines += [f"mul.lo.u32 {name}16, {name}15, 3;", f"mov.b32 {name}17, 0x01010101;"]
    return "\n".join([*lines, *block_sums(WORDS, "u8"), "}"])


@gluon.constexpr_function
def upper_staging_text(brain):
    """$0..$53: a lane's words for each of three planes, word by word; $54 (f32): what a unit counts, NaN where a number
    is not finite. $55..$70: the lane's 16 pairs of fp16, or bf16 where `brain`."""
    out = WORDS * PLANES
    lines = ["{", *whole_numbers(brain, out, TO_WHOLE, 254)]

    def pair(word, old, new):
        """Two numbers x_old - 3 x_new of neighbours along k, of slots or None: a word's upper bytes in all planes."""
        constant = BIASED - (ONES if old is not None else 0) + (3 * ONES if new is not None else 0)
        for half in range(2):
            if new is None:
                lines.append(f"sub.s32 z{half}, b{2 * old + half}, {-constant & 0xFFFFFFFF:#x};")
                continue
            lines.append(f"mad.lo.s32 z{half}, b{2 * new + half}, 0xFFFFFFFD, {constant & 0xFFFFFFFF:#x};")
            if old is not None:
                lines.append(f"add.s32 z{half}, z{half}, b{2 * old + half};")
        for plane in range(PLANES):
            lines.append(f"prmt.b32 n, z0, z1, {(4 + plane) << 12 | 3 << 8 | plane << 4 | 3:#x};")
            lines.append(f"xor.b32 ${PLANES * word + plane}, n, 0x80008000;")

    for n in range(5):
        for first, start, stride in ((0, 0, 2), (5, 1, 2), (10, 10, 1)):
            pair(first + n, start + stride * n, start + stride * (n + 1) if n < 4 else None)
    pair(15, None, 15)
    pair(16, 15, None)
    for part in range(4):
        lines.append(f"sub.s32 z{part}, {BIASED + 8 * ONES & 0xFFFFFFFF:#x}, b{8 * part};")
        lines += [f"sub.s32 z{part}, z{part}, b{8 * part + i};" for i in range(1, 8)]
    lines += ["prmt.b32 u, z0, z1, 0x5140;", "prmt.b32 v, z2, z3, 0x5140;"]
    for plane, pick in ((0, "0x5410"), (1, "0x7632")):
        lines += [f"prmt.b32 n, u, v, {pick};", f"xor.b32 ${PLANES * 17 + plane}, n, 0x80808080;"]
    lines += ["prmt.b32 u, z0, z1, 0x0062;", "prmt.b32 v, z2, z3, 0x0062;", "prmt.b32 n, u, v, 0x5410;"]
    lines.append(f"xor.b32 ${PLANES * 17 + 2}, n, 0x80808080;")
    return "\n".join([*lines, "}"])
