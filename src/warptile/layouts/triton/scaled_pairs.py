"""The multiply-add that makes weights of codes, two at a time, for every decoder in Gluon."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def multiply_add(kind):
    """PTX: $1 times the low half of $2 plus its high half to $0, of pairs of the PTX type `kind`."""
    return """{
    .reg .b32 s, t;
    .reg .b16 l, h;
    mov.b32 {l, h}, $2;
    mov.b32 s, {l, l};
    mov.b32 t, {h, h};
    fma.rn.KIND $0, $1, s, t;
    }""".replace("KIND", kind)


@gluon.jit
def scaled_pairs(pairs, factors, KIND: gl.constexpr):
    """pairs * (low half of factors) + (high half of factors), rounded once: two numbers of KIND, "f16x2" or "bf16x2",
    in each i32 of both, which have one shape."""
    return gl.inline_asm_elementwise(
        multiply_add(KIND), "=r,r,r", [pairs, factors], dtype=gl.int32, is_pure=True, pack=1
    )


@gluon.constexpr_function
def joined(L):
    """Whether codes and scales are made several at a time: `L` is `parameters.decoder_parameters` and this."""
    return L[18] != 0


@gluon.constexpr_function
def paired(L):
    """Whether the scales of two groups are one pair, groups g and g + 4 of a step's eight: the kind of 8 bits a scale
    without a minimum, whose offset times the scale is exact."""
    return joined(L) and L[6] == "k8" and L[7] == 8 and L[3] == 0 and L[10] != 0


@gluon.constexpr_function
def eight_bit_scales():
    """PTX: signed bytes of $1 and $2 that $3 picks (each twice in its half), times $4, an fp16 pair, to $0.

    With its highest bit the other way round, a byte or-ed into 1024 is 1152 + sc in fp16, exact."""
    return """{
    .reg .b32 a, b;
    prmt.b32 a, $1, $2, $3;
    mov.b32 b, 0x64806480;
    lop3.b32 a, a, 0x00FF00FF, b, 0x6A;
    mov.b32 b, 0xE480E480;
    add.rn.f16x2 a, a, b;
    mul.rn.f16x2 $0, a, $4;
    }"""


@gluon.constexpr_function
def half_multiply_add(half, kind, bf16):
    """PTX: $1 times one half of $2 plus that half of $3 to $0, of pairs of the PTX type `kind`; with `bf16` fp16 is
    rounded to bf16 then."""
    halves = "mov.b32 {l, h}, $2; mov.b32 s, {X, X}; mov.b32 {l, h}, $3; mov.b32 t, {X, X};"
    halves = halves.replace("X", "lh"[half])
    if bf16:
        ends = """fma.rn.f16x2 v, $1, s, t;
    mov.b32 {l, h}, v;
    cvt.f32.f16 a, l;
    cvt.f32.f16 b, h;
    cvt.rn.bf16x2.f32 $0, b, a;"""
    else:
        ends = f"fma.rn.{kind} $0, $1, s, t;"
    return "{ .reg .b32 v, s, t; .reg .b16 l, h; .reg .f32 a, b; " + halves + ends + "}"


@gluon.constexpr_function
def both_halves(value, kind):
    """A pair of one number of the PTX type `kind`, as an i32: `value` is plus or minus a power of two that it has."""
    import struct

    if kind == "f16x2":
        (bits,) = struct.unpack("<H", struct.pack("<e", value))
        held = struct.unpack("<e", struct.pack("<H", bits))[0]
    else:
        bits = struct.unpack("<I", struct.pack("<f", value))[0] >> 16
        held = struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    if held != value:
        raise ValueError(f"{value} is no number of {kind}")
    found = bits << 16 | bits
    return found - (1 << 32) if bits >> 15 else found


@gluon.jit
def times(pairs, VALUE: gl.constexpr, KIND: gl.constexpr):
    """Pairs of KIND times a power of two, i32."""
    TEXT: gl.constexpr = "mul.rn." + KIND + " $0, $1, $2;"
    return gl.inline_asm_elementwise(
        TEXT, "=r,r,r", [pairs, pairs * 0 + both_halves(VALUE, KIND)], dtype=gl.int32, is_pure=True, pack=1
    )


@gluon.jit
def half_scaled_pairs(pairs, scales, shifts, HALF: gl.constexpr, KIND: gl.constexpr, BF16: gl.constexpr):
    """pairs * (half HALF of scales) + (half HALF of shifts), rounded once to KIND and with BF16 to bf16 then; i32."""
    return gl.inline_asm_elementwise(
        half_multiply_add(HALF, KIND, BF16), "=r,r,r,r", [pairs, scales, shifts], dtype=gl.int32, is_pure=True, pack=1
    )
