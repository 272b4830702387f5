"""Six-bit codes in Gluon, of nibbles in one plane and the two bits above them in another; see `lane_layouts`."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from warptile.layouts.triton.lane_layouts import lane_layout


@gluon.constexpr_function
def six_text():
    """PTX: the eight pairs of six-bit codes of two words of low nibbles, $8 and $9, and one of high pairs of bits, $10,
    to $0 .. $7.

    Bytes of the same place in both words hold nibbles that lie eight bits apart, as their high pairs do: one selection
    joins two pairs of codes.
    """
    lines = ["{", ".reg .b32 c, d, e, o, u;"]
    lines += ["prmt.b32 c, $8, $9, 0x6240;", "prmt.b32 d, $8, $9, 0x7351;"]
    lines += ["and.b32 e, $10, 0x33333333;", "shr.u32 o, $10, 2;", "and.b32 o, o, 0x33333333;"]

    def joined(nibbles, low, high):
        lines.append(f"lop3.b32 u, {nibbles}, u, 0x0F0F0F0F, 0xE4;")
        lines.extend([f"and.b32 ${low}, u, 0x00FF00FF;", f"prmt.b32 ${high}, u, 0, 0x4341;"])

    lines.append("shl.b32 u, e, 4;")
    joined("c", 0, 4)
    lines.append("mov.b32 u, e;")
    joined("d", 2, 6)
    lines += ["shr.u32 c, c, 4;", "shl.b32 u, o, 4;"]
    joined("c", 1, 5)
    lines += ["shr.u32 d, d, 4;", "mov.b32 u, o;"]
    joined("d", 3, 7)
    return "\n".join([*lines, "}"])


@gluon.jit
def six_pairs(nibbles, high):
    """Codes of a part, i32[rows, 4, 8], as `bit_pairs` has them, of nibbles i32[rows, 4, 2] and the two bits above them
    i32[rows, 4, 1]."""
    ROWS: gl.constexpr = nibbles.shape[0]
    LAYOUT: gl.constexpr = lane_layout(ROWS, [1])
    first, second = gl.split(gl.reshape(nibbles, (ROWS, 4, 1, 2)))
    first = gl.convert_layout(first, LAYOUT, assert_trivial=True)
    second = gl.convert_layout(second, LAYOUT, assert_trivial=True)
    high = gl.convert_layout(high, LAYOUT, assert_trivial=True)
    s0, s1, s2, s3, s4, s5, s6, s7 = gl.inline_asm_elementwise(
        six_text(), "=&r,=&r,=&r,=&r,=&r,=&r,=&r,=&r,r,r,r", [first, second, high], dtype=(gl.int32,) * 8, is_pure=True,
        pack=1,
    )  # fmt: skip
    even = gl.join(gl.join(s0, s4), gl.join(s2, s6))
    odd = gl.join(gl.join(s1, s5), gl.join(s3, s7))
    return gl.convert_layout(gl.reshape(gl.join(even, odd), (ROWS, 4, 8)), lane_layout(ROWS, [8]), assert_trivial=True)
