"""Decoding by single elements: device functions that work on tensors of any shape, in Triton and in Gluon alike.

`L` is `parameters.decoder_parameters`'s tuple, as in `decode`. Loading and computing are apart, so that a kernel can
load for a step long before it computes with it.
"""

from __future__ import annotations

import triton
import triton.language as tl

from warptile.layouts.triton.decode import half_bits, look_up, whole


@triton.jit
def typed(W, plane, BITS: tl.constexpr):
    """A pointer to the elements of BITS bits of the plane that starts at word `plane`."""
    if BITS == 32:
        P = W + plane
    elif BITS == 16:
        P = W.to(tl.pointer_type(tl.uint16)) + plane.to(tl.int64) * 2
    else:
        P = W.to(tl.pointer_type(tl.uint8)) + plane.to(tl.int64) * 4
    return P


@triton.jit
def scale_words(W, s0, s1, s2, base, unit, row0, ahead, low, high, group, part, padded, mask, other, L: tl.constexpr):
    """What the scales of a step are made of: three i32 tensors, some of them unused, for `scales_of`.

    s0, s1, s2: the kind's planes, or for trits that hold their scale s0 the plane of tail words. A row is row0 + low +
    high and its step base + ahead: row0 and base (i64) scalars, the same for all threads, low and ahead tensors; high
    one of constants, so that it costs no instruction. unit: base over the steps that a superblock has, where it has
    several, and part the number of the step within it. mask, other: which rows and steps are read at all, and 0
    for those that are not; or None and None.
    """
    KIND: tl.constexpr = L[6]
    GROUPS: tl.constexpr = L[7]
    PARTS: tl.constexpr = L[8] // (32 * L[2]) if L[8] > 32 * L[2] else 1
    # Bits of a number that stands alone; bits of groups' high pairs beside their low nibbles.
    BYTE: tl.constexpr = 8 if KIND == "e8m0" or KIND == "e4m3" else 0
    WIDTH: tl.constexpr = 16 if KIND == "half" else (32 if KIND == "halfmin" else BYTE)
    wide = unit * padded + row0
    own = (ahead // PARTS) * padded + low
    steps = base * padded + row0
    narrow = ahead * padded + low
    if KIND == "inline":
        first = tl.load(W + s0 + steps + narrow + high, mask=mask, other=other)
        second = first
        third = first
    elif WIDTH != 0:
        P = typed(W, s0, WIDTH) + wide * GROUPS + (own * GROUPS + group)
        first = tl.load(P + high * GROUPS, mask=mask, other=other).to(tl.int32)
        second = first
        third = first
    elif KIND == "k6min":
        P = W + s0 + wide * 4 + own * 4
        first = tl.load(P + high * 4, mask=mask, other=other)
        second = tl.load(P + (1 + part) + high * 4, mask=mask, other=other)
        third = tl.load(P + (high * 4 + 3), mask=mask, other=other)
    elif KIND == "k4min":
        first = tl.load(W + s0 + wide + own + high, mask=mask, other=other)
        second = tl.load(W + s1 + steps * 2 + (narrow * 2 + group // 4) + high * 2, mask=mask, other=other)
        third = first
    else:
        first = tl.load(typed(W, s0, 16) + wide + own + high, mask=mask, other=other).to(tl.int32)
        if KIND == "k8":
            P8 = typed(W, s1, 8) + steps * 8 + (narrow * 8 + group)
            second = tl.load(P8 + high * 8, mask=mask, other=other).to(tl.int32)
        else:
            second = tl.load(typed(W, s1, 4 * GROUPS) + steps + narrow + high, mask=mask, other=other).to(tl.int32)
        if KIND == "k6x16" or KIND == "k6x32":
            third = tl.load(typed(W, s2, 2 * GROUPS) + steps + narrow + high, mask=mask, other=other).to(tl.int32)
        else:
            third = first
    return first, second, third


@triton.jit
def scales_of(first, second, third, group, part, up, down, L: tl.constexpr):
    """up * scale and down * minimum from the words of `scale_words`, fp32; the minimum is 0.0 where there is none."""
    KIND: tl.constexpr = L[6]
    minimum = 0.0
    if KIND == "inline":
        scale = half_bits((first >> 16) & 0xFFFF) * up
    elif KIND == "half":
        scale = half_bits(first) * up
    elif KIND == "halfmin":
        scale = half_bits(first & 0xFFFF) * up
        minimum = -half_bits((first >> 16) & 0xFFFF) * down
    elif KIND == "e8m0":
        scale = tl.where(first < 2, 0x00200000 << (first & 1), (first - 1) << 23).to(tl.float32, bitcast=True) * up
    elif KIND == "e4m3":
        low = first & 127
        bits = (low << 20) + (119 << 23)
        found = tl.where(low < 8, whole(low) * 0.0009765625, bits.to(tl.float32, bitcast=True))
        scale = tl.where(first == 127, 0.0, found) * up
    elif KIND == "odd":
        scale = (half_bits(first) * up) * (whole((second >> (4 * group)) & 15) * (2 * L[17]) + L[17])
    elif KIND == "k6min":
        six = ((second >> (4 * group)) & 0x000F000F) | (((third >> (8 * part + 2 * group)) << 4) & 0x00300030)
        scale = (half_bits(first & 0xFFFF) * up) * whole(six & 0xFFFF)
        minimum = (half_bits((first >> 16) & 0xFFFF) * down) * whole((six >> 16) & 0xFFFF)
    elif KIND == "k8":
        scale = (half_bits(first) * up) * (whole(second ^ 128) - 128.0)
    elif KIND == "k6x16" or KIND == "k6x32":
        six = ((second >> (4 * group)) & 15) | (((third >> (2 * group)) & 3) << 4)
        scale = (half_bits(first) * up) * (whole(six) - 32.0)
    else:
        tl.static_assert(KIND == "k4min")
        words = second >> (4 * (group & 3))
        scale = (half_bits(first & 0xFFFF) * up) * whole(words & 15)
        minimum = (half_bits((first >> 16) & 0xFFFF) * down) * whole((words >> 16) & 15)
    return scale, minimum


@triton.jit
def signed_levels(pairs, L: tl.constexpr):
    """The codebook's values of two codes in each i32, as two fp16."""
    low = (look_up(pairs & 0xFFFF, L) + 0x6480).to(tl.uint16).to(tl.float16, bitcast=True) - 1152.0
    high = (look_up((pairs >> 16) & 0xFFFF, L) + 0x6480).to(tl.uint16).to(tl.float16, bitcast=True) - 1152.0
    low = low.to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF
    return low | (high.to(tl.int16, bitcast=True).to(tl.int32) << 16)
