"""Loads of a decoder in Triton: elements of a plane, a row's unit, and numbers from bits.

`L`, `row`, `at` and R as in `decode`.
"""

from __future__ import annotations

import triton
import triton.language as tl

MAGIC_BITS = tl.constexpr(0x4B000000)
MAGIC = tl.constexpr(8388608.0)


@triton.jit
def padded(rows):
    """Rows a plane is laid for: the slice's, rounded up to 16."""
    return (rows + 15) // 16 * 16


@triton.jit
def held(row, rows):
    """`row`, but the last row that the planes are laid for where it is beyond."""
    return tl.minimum(row, padded(rows) - 1)


@triton.jit
def load_plane(W, plane, row, at, rows, STEP: tl.constexpr, BITS: tl.constexpr, SPAN: tl.constexpr, PER: tl.constexpr):
    """Elements (i32, zero-extended) of the plane that starts at word `plane`: [R, 4, PER] where a row has at most 32
    bits (the same for each quad lane), else [R, 1, PER].

    Each lane loads its row's word itself: a register that several lanes need is cheaper to load than to pass on. Where
    a row has fewer than 32 bits its word is cut, since asynchronous copies take four bytes at least.
    """
    unit = (at // (SPAN // STEP)).to(tl.int64) * padded(rows)
    if PER * BITS <= 32:
        SHARE: tl.constexpr = 32 // (PER * BITS)
        word = unit // SHARE + row // SHARE
        found = tl.load((W + plane + word)[:, None] + tl.zeros((1, 4), tl.int32))
        if SHARE > 1:
            found = found >> (row % SHARE * (PER * BITS))[:, None]
        found = found[:, :, None]
        if BITS < 32:
            found = (found >> (tl.arange(0, PER) * BITS)[None, None, :]) & ((1 << BITS) - 1)
    else:
        if BITS == 32:
            P = W + plane
        elif BITS == 16:
            P = W.to(tl.pointer_type(tl.uint16)) + plane.to(tl.int64) * 2
        else:
            P = W.to(tl.pointer_type(tl.uint8)) + plane.to(tl.int64) * 4
        P += unit * PER
        columns = row[:, None] * PER + tl.arange(0, PER)[None, :]
        if at.type.is_block():
            found = tl.load(P[:, None] + columns)
        else:
            found = tl.load(P + columns)
        found = found.to(tl.int32)[:, None, :]
    return found


@triton.jit
def load_words(W, plane, row, at, rows, BITS: tl.constexpr, WORDS: tl.constexpr, R: tl.constexpr):
    """Each quad lane's own elements of a code plane, i32[R, 4, WORDS], zero-extended."""
    PER: tl.constexpr = 4 * WORDS
    if BITS == 32:
        P = W + plane
    elif BITS == 16:
        P = W.to(tl.pointer_type(tl.uint16)) + plane.to(tl.int64) * 2
    else:
        P = W.to(tl.pointer_type(tl.uint8)) + plane.to(tl.int64) * 4
    P += at.to(tl.int64) * padded(rows) * PER
    columns = row[:, None] * PER + tl.arange(0, PER)[None, :]
    if at.type.is_block():
        found = tl.load(P[:, None] + columns)
    else:
        found = tl.load(P + columns)
    return tl.reshape(found.to(tl.int32), (R, 4, WORDS))


@triton.jit
def half_bits(bits):
    """fp16 values, given as the low 16 bits of i32, as fp32 (exact)."""
    return bits.to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit
def whole(code):
    """Integers 0 <= code < 2^23 as fp32, without a conversion instruction."""
    return (code | MAGIC_BITS).to(tl.float32, bitcast=True) - MAGIC


@triton.jit
def load_unit(W, plane, row, rows):
    """Biased exponents of the rows' units, i32[R]: see `Arrangement`."""
    bytes = (W + plane).to(tl.pointer_type(tl.uint8))
    return tl.load(bytes + row, mask=row < rows, other=127).to(tl.int32)


@triton.jit
def unit_factors(exponent, L: tl.constexpr):
    """(2^24 MUL / u, 1 / u), fp32[R, 1, 1], of rows whose units have the biased exponents i32[R]."""
    up = ((278 - exponent) << 23).to(tl.float32, bitcast=True) * (L[10] if L[10] != 0 else 1)
    down = ((254 - exponent) << 23).to(tl.float32, bitcast=True)
    return up[:, None, None], down[:, None, None]
