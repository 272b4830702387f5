"""Scales and minimums of a tile in Triton, of every scale kind.

`L`, `row`, `at` and R as in `decode`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.plane_decode import half_bits, load_plane, padded, whole


@triton.jit
def six_bits(low, high, group, FIRST: tl.constexpr):
    """Numbers of 6 bits, i32[R, 4, groups]: low nibbles from number FIRST on in `low` i32[R, 4, 1], high bits in
    `high`."""
    position = group + FIRST
    return ((low >> (4 * position)) & 15) | (((high >> (2 * position)) & 3) << 4)


@triton.jit
def four_words(W, plane, row, unit, rows):
    """The four words (i32[R] each) that a plane holds for each row and unit, loaded as one."""
    P = W + plane + unit.to(tl.int64) * padded(rows) * 4
    columns = row[:, None] * 4 + tl.arange(0, 4)[None, :]
    if unit.type.is_block():
        found = tl.load(P[:, None] + columns)
    else:
        found = tl.load(P + columns)
    even, odd = tl.split(tl.reshape(found, (row.shape[0], 2, 2)))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit
def six_bit_words(W, plane, row, at, rows, L: tl.constexpr):
    """Of kind k6min: d | dmin << 16, i32[R, 1, 1], and for each group of the step, i32[R, 1, groups], words that hold
    sc (low half) and mn (high half): bits 0 to 3 of each, and at bits 4 and 5 of each their upper two."""
    PARTS: tl.constexpr = L[8] // (32 * L[2])
    both, first, second, high = four_words(W, plane, row, at // PARTS, rows)
    part = at % PARTS
    low = tl.where(part == 0, first, second)[:, None, None]
    high = (high >> (8 * part))[:, None, None]
    group = tl.arange(0, L[7])[None, None, :]
    return both[:, None, None], low >> (4 * group), (high << 4) >> (2 * group)


@triton.jit
def load_scales(W, s0, s1, s2, tail, row, at, rows, up, down, L: tl.constexpr):
    """up * scale and down * minimum of each group of the step, fp32[R, 4 or 1, groups]; with factors of 1 as the
    reference decode computes them.

    up, down: fp32[R, 1, 1], powers of two. The minimum is 0.0 where the kind has none.
    """
    KIND: tl.constexpr = L[6]
    GROUPS: tl.constexpr = L[7]
    STEP: tl.constexpr = 32 * L[2]
    SPAN: tl.constexpr = L[8]
    group = tl.arange(0, GROUPS)[None, None, :]
    minimum = 0.0
    if KIND == "inline":
        scale = half_bits((tail >> 16) & 0xFFFF) * up
    elif KIND == "half":
        scale = half_bits(load_plane(W, s0, row, at, rows, STEP, 16, SPAN, GROUPS)) * up
    elif KIND == "halfmin":
        both = load_plane(W, s0, row, at, rows, STEP, 32, SPAN, GROUPS)
        scale = half_bits(both & 0xFFFF) * up
        minimum = -half_bits((both >> 16) & 0xFFFF) * down
    elif KIND == "e8m0":
        e = load_plane(W, s0, row, at, rows, STEP, 8, SPAN, GROUPS)
        scale = tl.where(e < 2, 0x00200000 << (e & 1), (e - 1) << 23).to(tl.float32, bitcast=True) * up
    elif KIND == "e4m3":
        s = load_plane(W, s0, row, at, rows, STEP, 8, STEP, GROUPS)
        low = s & 127
        bits = (low << 20) + (119 << 23)
        found = tl.where(low < 8, whole(low) * 0.0009765625, bits.to(tl.float32, bitcast=True))
        scale = tl.where(s == 127, 0.0, found) * up
    elif KIND == "odd":
        d = load_plane(W, s0, row, at, rows, STEP, 16, SPAN, 1)
        words = load_plane(W, s1, row, at, rows, STEP, 4 * GROUPS, STEP, 1)
        scale = (half_bits(d) * up) * (whole((words >> (4 * group)) & 15) * (2 * L[17]) + L[17])
    elif KIND == "k6min":
        both, low, high = six_bit_words(W, s0, row, at, rows, L)
        six = (low & 0x000F000F) | (high & 0x00300030)
        scale = (half_bits(both & 0xFFFF) * up) * whole(six & 0xFFFF)
        minimum = (half_bits((both >> 16) & 0xFFFF) * down) * whole((six >> 16) & 0xFFFF)
    elif KIND == "k8":
        d = load_plane(W, s0, row, at, rows, STEP, 16, SPAN, 1)
        sc = load_plane(W, s1, row, at, rows, STEP, 8, STEP, 8)
        scale = (half_bits(d) * up) * (whole(sc ^ 128) - 128.0)
    elif KIND == "k6x16" or KIND == "k6x32":
        d = load_plane(W, s0, row, at, rows, STEP, 16, SPAN, 1)
        low = load_plane(W, s1, row, at, rows, STEP, 4 * GROUPS, STEP, 1)
        high = load_plane(W, s2, row, at, rows, STEP, 2 * GROUPS, STEP, 1)
        scale = (half_bits(d) * up) * (whole(six_bits(low, high, group, 0)) - 32.0)
    else:
        tl.static_assert(KIND == "k4min")
        both = load_plane(W, s0, row, at, rows, STEP, 32, SPAN, 1)
        first, second = tl.split(load_plane(W, s1, row, at, rows, STEP, 32, STEP, 2))
        words = tl.where(group < 4, first[:, :, None], second[:, :, None]) >> (4 * (group & 3))
        scale = (half_bits(both & 0xFFFF) * up) * whole(words & 15)
        minimum = (half_bits((both >> 16) & 0xFFFF) * down) * whole((words >> 16) & 15)
    return scale, minimum
