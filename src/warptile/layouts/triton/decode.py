"""Device decoders for Triton: a tile of quad words to weights, by the layout's parameters.

Every function takes `L`, the tuple that `parameters.decoder_parameters` builds, as a compile-time constant, and serves
any layout. A tile is R pairs of (row, step): `row` i32[R], rows that the planes are laid for (`held`), `at` the step of
each, a scalar or i32[R]. A decoded tile is [R, 4, S, P, 2]: quad lane c, scale group s, slot p of the group, element e;
the element along k is 8 (s P + p) + 2 c + e of the step.
"""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.code_decode import code_pairs, look_up, steps_of
from warptile.layouts.triton.plane_decode import half_bits, held, load_plane, load_unit, padded, unit_factors, whole
from warptile.layouts.triton.scale_decode import load_scales, six_bit_words

__all__ = [
    "code_pairs", "codes_and_scales", "decode_plain", "half_bits", "held", "in_order", "load_plane", "load_scales",
    "load_unit", "look_up", "padded", "six_bit_words", "steps_of", "unit_factors", "whole",
]  # fmt: skip


@triton.jit
def codes_and_scales(W, p0, p1, p2, p3, p4, p5, row, at, rows, up, down, R: tl.constexpr, L: tl.constexpr):
    """(codes i32[R, 4, slots] two a word, scales fp32[R, 4 or 1, groups], minimums) of a tile."""
    pairs, tail = code_pairs(W, p0, p1, p2, row, at, rows, R, L)
    if L[15] == 1:
        scale, minimum = load_scales(W, p1, p2, p3, tail, row, at, rows, up, down, L)
    elif L[15] == 2:
        scale, minimum = load_scales(W, p2, p3, p4, tail, row, at, rows, up, down, L)
    else:
        scale, minimum = load_scales(W, p3, p4, p5, tail, row, at, rows, up, down, L)
    return pairs, scale, minimum


@triton.jit
def decode_plain(W, p0, p1, p2, p3, p4, p5, row, at, rows, R: tl.constexpr, L: tl.constexpr):
    """A decoded tile in fp32, equal to the reference decode to the bit."""
    SLOTS: tl.constexpr = 4 * L[2]
    GROUPS: tl.constexpr = L[7]
    one = tl.full((R, 1, 1), 1.0, tl.float32)
    pairs, scale, minimum = codes_and_scales(W, p0, p1, p2, p3, p4, p5, row, at, rows, one, one, R, L)
    pairs = tl.reshape(pairs, (R, 4, GROUPS, SLOTS // GROUPS))
    low = steps_of(pairs & 0xFFFF, L) * scale[:, :, :, None]
    high = steps_of((pairs >> 16) & 0xFFFF, L) * scale[:, :, :, None]
    if L[16]:
        low = low - minimum[:, :, :, None]
        high = high - minimum[:, :, :, None]
    return tl.join(low, high)


@triton.jit
def in_order(tile, R: tl.constexpr, L: tl.constexpr):
    """A decoded tile as [R, step] in the order of k."""
    return tl.reshape(tl.permute(tile, (0, 2, 3, 1, 4)), (R, 32 * L[2]))
