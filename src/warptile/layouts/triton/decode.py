"""Device decoders for Triton: a tile of quad words to weights, by the layout's parameters.

Every function takes `L`, the tuple that `parameters.decoder_parameters` builds, as a compile-time constant, and serves
any layout. A tile is R pairs of (row, step): `row` i32[R], `at` the step of each, a scalar or i32[R]. A decoded tile is
[R, 4, S, P, 2]: quad lane c, scale group s, slot p of the group, element e; the element along k is
8 (s P + p) + 2 c + e of the step.
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
def load_plane(W, plane, row, at, rows, STEP: tl.constexpr, BITS: tl.constexpr, SPAN: tl.constexpr, PER: tl.constexpr, mask):
    """Elements [R, PER] (i32, zero-extended) of the plane that starts at word `plane`; [R] where PER is 1."""
    if BITS == 32:
        P = W + plane
    elif BITS == 16:
        P = W.to(tl.pointer_type(tl.uint16)) + plane.to(tl.int64) * 2
    else:
        P = W.to(tl.pointer_type(tl.uint8)) + plane.to(tl.int64) * 4
    RATIO: tl.constexpr = SPAN // STEP
    P += (at // RATIO).to(tl.int64) * padded(rows) * PER
    if PER == 1:
        found = tl.load(P + row, mask=mask, other=0)
    else:
        columns = tl.arange(0, PER)[None, :]
        if at.type.is_block():
            pointers = P[:, None] + (row[:, None] * PER + columns)
        else:
            pointers = P + (row[:, None] * PER + columns)
        found = tl.load(pointers, mask=mask[:, None], other=0)
    return found.to(tl.int32)


@triton.jit
def half_bits(bits):
    """fp16 values, given as the low 16 bits of i32, as fp32 (exact)."""
    return bits.to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit
def whole(code):
    """Integers 0 <= code < 2^23 as fp32, without a conversion instruction."""
    return (code | MAGIC_BITS).to(tl.float32, bitcast=True) - MAGIC


@triton.jit
def bit_pairs(W, plane, row, at, rows, mask, R: tl.constexpr, CHUNKS: tl.constexpr, B: tl.constexpr):
    """Codes of a plane of B bits, i32[R, 4, 4 CHUNKS]: e = 0 in the low half, e = 1 in the high half."""
    BITS: tl.constexpr = 8 * B * CHUNKS if 8 * B * CHUNKS < 32 else 32
    HALF: tl.constexpr = BITS // 2
    SLOTS: tl.constexpr = HALF // B
    WORDS: tl.constexpr = 4 * CHUNKS // SLOTS
    words = load_plane(W, plane, row, at, rows, 32 * CHUNKS, BITS, 32 * CHUNKS, 4 * WORDS, mask)
    words = tl.reshape(words, (R, 4, WORDS, 1))
    shift = (tl.arange(0, SLOTS) * B)[None, None, None, :]
    MASK: tl.constexpr = (1 << B) - 1
    if BITS == 32:
        pairs = (words >> shift) & (MASK * 0x00010001)
    else:
        pairs = ((words >> shift) & MASK) | (((words >> (shift + HALF)) & MASK) << 16)
    return tl.reshape(pairs, (R, 4, 4 * CHUNKS))


@triton.jit
def trit_pairs(W, p0, p1, p2, row, at, rows, mask, R: tl.constexpr, L: tl.constexpr):
    """Digits 0, 1, 2 of base-3 bytes as `bit_pairs` has codes, and the tail word i32[R].

    One formula for every digit: digit n of byte b = (((b * 3^n) mod 256) * 3) >> 8, two bytes at a time. The stages' byte
    counts are the constants; slot S of a stage of `count` bytes is digit 8 S div count of its bytes, but for the tail, whose
    two or four bytes give the digit (8 S + 2 c) div count.
    """
    SLOTS: tl.constexpr = 4 * L[2]
    STEP: tl.constexpr = 32 * L[2]
    COUNT0: tl.constexpr = L[3]
    COUNT1: tl.constexpr = L[4]
    COUNT2: tl.constexpr = L[5]
    END0: tl.constexpr = COUNT0 * 5 // 8
    END1: tl.constexpr = END0 + COUNT1 * 5 // 8
    first = load_plane(W, p0, row, at, rows, STEP, 32, STEP, COUNT0 // 4, mask)
    second = load_plane(W, p1, row, at, rows, STEP, 32 if COUNT1 == 16 else 16, STEP, 4, mask)
    tail = load_plane(W, p2, row, at, rows, STEP, 32, STEP, 1, mask)
    slot = tl.arange(0, SLOTS)[None, None, :]
    lane = tl.arange(0, 4)[None, :, None]
    if COUNT0 == 32:
        low, high = tl.split(tl.reshape(first, (R, 4, 2)))
        word0 = tl.where((slot & 2) == 0, low[:, :, None], high[:, :, None])
    else:
        word0 = first[:, :, None]
    word0 = word0 >> (8 * (slot & 1))
    word1 = second[:, :, None]
    if COUNT1 == 16:
        word1 = word1 >> (8 * ((slot - END0) & 1))
    else:
        word1 = (word1 & 0xFF) | ((word1 & 0xFF00) << 8)
    word2 = tail[:, None, None] >> (8 * ((2 * lane) % COUNT2))
    word2 = (word2 & 0xFF) | ((word2 & 0xFF00) << 8)
    digit1 = (slot - END0) // (COUNT1 // 8)
    digit2 = (8 * (slot - END1) + 2 * lane) // COUNT2
    digit = tl.where(slot < END0, slot // (COUNT0 // 8), tl.where(slot < END1, digit1, digit2))
    power = tl.where(digit == 0, 1, tl.where(digit == 1, 3, tl.where(digit == 2, 9, tl.where(digit == 3, 27, 81))))
    word = tl.where(slot < END0, word0, tl.where(slot < END1, word1, word2)) & 0x00FF00FF
    product = (word * power) & 0x00FF00FF
    return ((product * 3) >> 8) & 0x00030003, tail


@triton.jit
def code_pairs(W, p0, p1, p2, row, at, rows, mask, R: tl.constexpr, L: tl.constexpr):
    """(codes i32[R, 4, slots] two a word, the trit tail word i32[R] or 0)."""
    if L[3] != 0:
        pairs, tail = trit_pairs(W, p0, p1, p2, row, at, rows, mask, R, L)
    else:
        pairs = bit_pairs(W, p0, row, at, rows, mask, R, L[2], L[0])
        if L[1] != 0:
            pairs = pairs | (bit_pairs(W, p1, row, at, rows, mask, R, L[2], L[1]) << L[0])
        tail = 0
    return pairs, tail


@triton.jit
def six_bits(low, high, group, FIRST: tl.constexpr):
    """Numbers of 6 bits i32[R, groups]: low nibbles from number FIRST on in `low` i32[R], their high bits in `high`."""
    position = group + FIRST
    return ((low[:, None] >> (4 * position)) & 15) | (((high[:, None] >> (2 * position)) & 3) << 4)


@triton.jit
def load_scales(W, s0, s1, s2, tail, row, at, rows, mask, L: tl.constexpr):
    """Scale and minimum of each group of the step, fp32[R, groups], as the reference decode computes them.

    The minimum is 0.0 where the kind has none.
    """
    KIND: tl.constexpr = L[6]
    GROUPS: tl.constexpr = L[7]
    STEP: tl.constexpr = 32 * L[2]
    SPAN: tl.constexpr = L[8]
    group = tl.arange(0, GROUPS)[None, :]
    minimum = 0.0
    if KIND == "inline":
        scale = half_bits((tail >> 16) & 0xFFFF)[:, None]
    elif KIND == "half":
        d = load_plane(W, s0, row, at, rows, STEP, 16, SPAN, GROUPS, mask)
        if GROUPS == 1:
            d = d[:, None]
        scale = half_bits(d)
    elif KIND == "halfmin":
        both = load_plane(W, s0, row, at, rows, STEP, 32, SPAN, GROUPS, mask)
        if GROUPS == 1:
            both = both[:, None]
        scale = half_bits(both & 0xFFFF)
        minimum = -half_bits((both >> 16) & 0xFFFF)
    elif KIND == "e8m0":
        e = load_plane(W, s0, row, at, rows, STEP, 8, SPAN, GROUPS, mask)
        if GROUPS == 1:
            e = e[:, None]
        scale = tl.where(e < 2, 0x00200000 << (e & 1), (e - 1) << 23).to(tl.float32, bitcast=True)
    elif KIND == "k6min":
        both = load_plane(W, s0, row, at, rows, STEP, 32, SPAN, 1, mask)
        low = load_plane(W, s1, row, at, rows, STEP, 32, STEP, 1, mask)
        high = load_plane(W, s2, row, at, rows, STEP, 16, STEP, 1, mask)
        scale = half_bits(both & 0xFFFF)[:, None] * whole(six_bits(low, high, group, 0))
        minimum = half_bits((both >> 16) & 0xFFFF)[:, None] * whole(six_bits(low, high, group, 4))
    elif KIND == "k8":
        d = load_plane(W, s0, row, at, rows, STEP, 16, SPAN, 1, mask)
        sc = load_plane(W, s1, row, at, rows, STEP, 8, STEP, 8, mask)
        scale = half_bits(d)[:, None] * (whole(sc ^ 128) - 128.0)
    elif KIND == "k6x16" or KIND == "k6x32":
        d = load_plane(W, s0, row, at, rows, STEP, 16, SPAN, 1, mask)
        low = load_plane(W, s1, row, at, rows, STEP, 4 * GROUPS, STEP, 1, mask)
        high = load_plane(W, s2, row, at, rows, STEP, 2 * GROUPS, STEP, 1, mask)
        scale = half_bits(d)[:, None] * (whole(six_bits(low, high, group, 0)) - 32.0)
    else:
        tl.static_assert(KIND == "k4min")
        both = load_plane(W, s0, row, at, rows, STEP, 32, SPAN, 1, mask)
        first, second = tl.split(load_plane(W, s1, row, at, rows, STEP, 32, STEP, 2, mask))
        words = tl.where(group < 4, first[:, None], second[:, None]) >> (4 * (group & 3))
        scale = half_bits(both & 0xFFFF)[:, None] * whole(words & 15)
        minimum = half_bits((both >> 16) & 0xFFFF)[:, None] * whole((words >> 16) & 15)
    return scale, minimum


@triton.jit
def look_up(code, L: tl.constexpr):
    """Signed 8-bit values of codes 0..15 from the codebook's four words, by selects and shifts alone."""
    low = tl.where((code & 4) == 0, L[11], L[12])
    high = tl.where((code & 4) == 0, L[13], L[14])
    word = tl.where(code < 8, low, high)
    return (word << (24 - 8 * (code & 3))) >> 24


@triton.jit
def steps_of(code, L: tl.constexpr):
    """What codes stand for before scaling, fp32: MUL * code - OFFSET, or the codebook's value."""
    if L[10] == 0:
        return look_up(code, L).to(tl.float32)
    if L[10] != 1:
        code = code * L[10]
    return (code | MAGIC_BITS).to(tl.float32, bitcast=True) - (MAGIC + L[9])


@triton.jit
def decode_plain(W, p0, p1, p2, p3, p4, p5, row, at, rows, R: tl.constexpr, L: tl.constexpr):
    """A decoded tile in fp32, equal to the reference decode to the bit."""
    mask = row < padded(rows)
    SLOTS: tl.constexpr = 4 * L[2]
    GROUPS: tl.constexpr = L[7]
    pairs, tail = code_pairs(W, p0, p1, p2, row, at, rows, mask, R, L)
    if L[15] == 1:
        scale, minimum = load_scales(W, p1, p2, p3, tail, row, at, rows, mask, L)
    elif L[15] == 2:
        scale, minimum = load_scales(W, p2, p3, p4, tail, row, at, rows, mask, L)
    else:
        scale, minimum = load_scales(W, p3, p4, p5, tail, row, at, rows, mask, L)
    codes = tl.join(pairs & 0xFFFF, (pairs >> 16) & 0xFFFF)
    value = tl.reshape(steps_of(codes, L), (R, 4, GROUPS, SLOTS // GROUPS, 2))
    value = value * tl.reshape(scale, (R, 1, GROUPS, 1, 1))
    if L[16]:
        value = value - tl.reshape(minimum, (R, 1, GROUPS, 1, 1))
    return value


@triton.jit
def in_order(tile, R: tl.constexpr, L: tl.constexpr):
    """A decoded tile as [R, step] in the order of k."""
    return tl.reshape(tl.permute(tile, (0, 2, 3, 1, 4)), (R, 32 * L[2]))
