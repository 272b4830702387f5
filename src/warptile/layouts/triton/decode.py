"""Device decoders for Triton: a tile of quad words to weights, by the layout's parameters.

Every function takes `L`, the tuple that `parameters.decoder_parameters` builds, as a compile-time constant, and serves
any layout. A tile is R pairs of (row, step): `row` i32[R], rows that the planes are laid for (`held`), `at` the step of
each, a scalar or i32[R]. A decoded tile is [R, 4, S, P, 2]: quad lane c, scale group s, slot p of the group, element e;
the element along k is 8 (s P + p) + 2 c + e of the step.
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
def bit_pairs(W, plane, row, at, rows, R: tl.constexpr, CHUNKS: tl.constexpr, B: tl.constexpr):
    """Codes of a plane of B bits, i32[R, 4, 4 CHUNKS]: e = 0 in the low half, e = 1 in the high half."""
    BITS: tl.constexpr = 8 * B * CHUNKS if 8 * B * CHUNKS < 32 else 32
    HALF: tl.constexpr = BITS // 2
    SLOTS: tl.constexpr = HALF // B
    WORDS: tl.constexpr = 4 * CHUNKS // SLOTS
    words = load_words(W, plane, row, at, rows, BITS, WORDS, R)[:, :, :, None]
    shift = (tl.arange(0, SLOTS) * B)[None, None, None, :]
    MASK: tl.constexpr = (1 << B) - 1
    if BITS == 32:
        pairs = (words >> shift) & (MASK * 0x00010001)
    else:
        pairs = ((words >> shift) & MASK) | (((words >> (shift + HALF)) & MASK) << 16)
    return tl.reshape(pairs, (R, 4, 4 * CHUNKS))


@triton.jit
def trit_pairs(W, p0, p1, p2, row, at, rows, R: tl.constexpr, L: tl.constexpr):
    """Digits 0, 1, 2 of base-3 bytes as `bit_pairs` has codes, and the tail word i32[R, 4, 1].

    One formula for every digit: digit n of byte b = (((b * 3^n) mod 256) * 3) >> 8, two bytes at a time. The stages'
    byte counts are the constants; slot S of a stage of `count` bytes is digit 8 S div count of its bytes, but for the
    tail, whose two or four bytes give the digit (8 S + 2 c) div count.
    """
    SLOTS: tl.constexpr = 4 * L[2]
    STEP: tl.constexpr = 32 * L[2]
    COUNT0: tl.constexpr = L[3]
    COUNT1: tl.constexpr = L[4]
    COUNT2: tl.constexpr = L[5]
    END0: tl.constexpr = COUNT0 * 5 // 8
    END1: tl.constexpr = END0 + COUNT1 * 5 // 8
    first = load_words(W, p0, row, at, rows, 32, COUNT0 // 16, R)
    second = load_words(W, p1, row, at, rows, 32 if COUNT1 == 16 else 16, 1, R)
    tail = load_plane(W, p2, row, at, rows, STEP, 32, STEP, 1)
    slot = tl.arange(0, SLOTS)[None, None, :]
    lane = tl.arange(0, 4)[None, :, None]
    if COUNT0 == 32:
        low, high = tl.split(first)
        word0 = tl.where((slot & 2) == 0, low[:, :, None], high[:, :, None])
    else:
        word0 = first
    word0 = word0 >> (8 * (slot & 1))
    word1 = second
    if COUNT1 == 16:
        word1 = word1 >> (8 * ((slot - END0) & 1))
    else:
        word1 = (word1 & 0xFF) | ((word1 & 0xFF00) << 8)
    word2 = tail >> (8 * ((2 * lane) % COUNT2))
    word2 = (word2 & 0xFF) | ((word2 & 0xFF00) << 8)
    digit1 = (slot - END0) // (COUNT1 // 8)
    digit2 = (8 * (slot - END1) + 2 * lane) // COUNT2
    digit = tl.where(slot < END0, slot // (COUNT0 // 8), tl.where(slot < END1, digit1, digit2))
    power = tl.where(digit == 0, 1, tl.where(digit == 1, 3, tl.where(digit == 2, 9, tl.where(digit == 3, 27, 81))))
    word = tl.where(slot < END0, word0, tl.where(slot < END1, word1, word2)) & 0x00FF00FF
    product = (word * power) & 0x00FF00FF
    return ((product * 3) >> 8) & 0x00030003, tail


@triton.jit
def code_pairs(W, p0, p1, p2, row, at, rows, R: tl.constexpr, L: tl.constexpr):
    """(codes i32[R, 4, slots] two a word, the trit tail word i32[R, 4, 1] or 0)."""
    if L[3] != 0:
        pairs, tail = trit_pairs(W, p0, p1, p2, row, at, rows, R, L)
    else:
        pairs = bit_pairs(W, p0, row, at, rows, R, L[2], L[0])
        if L[1] != 0:
            pairs = pairs | (bit_pairs(W, p1, row, at, rows, R, L[2], L[1]) << L[0])
        tail = 0
    return pairs, tail


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
        found = look_up(code, L).to(tl.float32)
    else:
        found = ((code * L[10]) | MAGIC_BITS).to(tl.float32, bitcast=True) - (MAGIC + L[9])
    return found


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


@triton.jit
def in_order(tile, R: tl.constexpr, L: tl.constexpr):
    """A decoded tile as [R, step] in the order of k."""
    return tl.reshape(tl.permute(tile, (0, 2, 3, 1, 4)), (R, 32 * L[2]))
