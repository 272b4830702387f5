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
