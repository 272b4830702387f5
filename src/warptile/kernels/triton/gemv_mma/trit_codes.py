"""Base-3 codes of a stretch as fp16 pairs, for `triton.gemv_mma`."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from warptile.kernels.triton.gemv_mma.layouts import pair_layout, word_layout
from warptile.kernels.triton.gemv_mma.tensors import along, join8


@gluon.constexpr_function
def trit_text(count0, count1):
    """PTX: all digits of a lane's bytes of base-3 codes, 256 times each, in order of slots.

    Digit n of byte b is (((b * 3^n) mod 256) * 3) >> 8: with t = 3 x, the digit stands in bits 8 and 9 of t, and what
    the next one is made of in its low byte; two bytes at a time. Outputs, then the words of the first stage, that of
    the second, and the tail's pairs (one a slot that it fills), already multiplied by their digit's power of three.
    """
    slots = (count0 + count1) * 5 // 8
    tails = 1 if count0 == 16 else 2
    outputs = slots + tails
    lines = ["{", ".reg .b32 x, t;"]

    def stage(source, first, pairs):
        lines.extend([f"and.b32 x, {source}, 0x00FF00FF;"])
        for n in range(5):
            lines.append("mul.lo.u32 t, x, 3;")
            lines.append(f"and.b32 ${first + pairs * n}, t, 0x03000300;")
            if n < 4:
                lines.append("and.b32 x, t, 0x00FF00FF;")

    words = count0 // 16
    for word in range(words):
        stage(f"${outputs + word}", 2 * word, 2 * words)
        lines.append(f"shr.u32 t, ${outputs + word}, 8;")
        stage("t", 2 * word + 1, 2 * words)
    begin = count0 * 5 // 8
    second = f"${outputs + words}"
    if count1 == 16:
        stage(second, begin, 2)
        lines.append(f"shr.u32 t, {second}, 8;")
        stage("t", begin + 1, 2)
    else:
        lines.append(f"prmt.b32 t, {second}, 0, 0x4140;")
        stage("t", begin, 1)
    for tail in range(tails):
        lines.append(f"mul.lo.u32 t, ${outputs + words + 1 + tail}, 3;")
        lines.append(f"and.b32 ${slots + tail}, t, 0x03000300;")
    return "\n".join([*lines, "}"])


@gluon.jit
def tail_pair(tail, lane, S: gl.constexpr, COUNT: gl.constexpr):
    """The two bytes of slot S of a tail of COUNT bytes, times the power of three of their digit, modulo 256."""
    word = tail >> (8 * ((2 * lane) % COUNT))
    word = (word & 0xFF) | ((word & 0xFF00) << 8)
    digit = (8 * S + 2 * lane) // COUNT
    power = gl.where(digit == 0, 1, gl.where(digit == 1, 3, gl.where(digit == 2, 9, gl.where(digit == 3, 27, 81))))
    return (word * power) & 0x00FF00FF


@gluon.jit
def trit_pairs(
    first, second, tail, L: gl.constexpr, WARPS: gl.constexpr, N: gl.constexpr, U: gl.constexpr, R: gl.constexpr
):
    """256 times the digits 0, 1, 2 of base-3 bytes, two a word: i32[W, U, R, 4, 1, slots]."""
    LAY: gl.constexpr = word_layout(WARPS, N, U, R, 1)
    lane = along(LAY, 3)
    first = gl.convert_layout(first, word_layout(WARPS, N, U, R, L[3] // 16), assert_trivial=True)
    second = gl.convert_layout(second, LAY, assert_trivial=True)
    tail = gl.convert_layout(tail, LAY, assert_trivial=True)
    if L[3] == 16:
        t0 = tail_pair(tail, lane, 0, L[5])
        t0 = gl.broadcast(t0, second)[0]
        a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15 = gl.inline_asm_elementwise(
            trit_text(L[3], L[4]), "=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,r,r,r", [first, second, t0],
            dtype=(gl.int32,) * 16, is_pure=True, pack=1,
        )  # fmt: skip
        found = gl.join(join8(a0, a2, a4, a6, a8, a10, a12, a14), join8(a1, a3, a5, a7, a9, a11, a13, a15))
        SLOTS: gl.constexpr = 16
    else:
        t0 = gl.broadcast(tail_pair(tail, lane, 0, L[5]), second)[0]
        t1 = gl.broadcast(tail_pair(tail, lane, 1, L[5]), second)[0]
        low, high = gl.split(first)
        low = gl.convert_layout(gl.expand_dims(low, 4), LAY, assert_trivial=True)
        high = gl.convert_layout(gl.expand_dims(high, 4), LAY, assert_trivial=True)
        (
            a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15,
            b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15,
        ) = gl.inline_asm_elementwise(
            trit_text(L[3], L[4]),
            "=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,r,r,r,r,r",
            [low, high, second, t0, t1], dtype=(gl.int32,) * 32, is_pure=True, pack=1,
        )  # fmt: skip
        even = gl.join(join8(a0, a4, a8, a12, b0, b4, b8, b12), join8(a2, a6, a10, a14, b2, b6, b10, b14))
        odd = gl.join(join8(a1, a5, a9, a13, b1, b5, b9, b13), join8(a3, a7, a11, a15, b3, b7, b11, b15))
        found = gl.join(even, odd)
        SLOTS: gl.constexpr = 32
    OUT: gl.constexpr = pair_layout(WARPS, N, U, R, 1, SLOTS)
    return gl.convert_layout(gl.reshape(found, [WARPS, U, R, 4, 1, SLOTS]), OUT, assert_trivial=True)
