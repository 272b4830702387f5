"""Device decoders in Gluon: 64 or 128 rows of a step, from shared memory to the lanes that multiply them.

Rows are counted as the matrix unit does (rho): lane group r = 0..7 of warp w holds rows 16 w + r and 16 w + 8 + r.
They stand for the rows n = 16 w + 2 reversed(r) + h of the tile (h = 0, 1): neighbours lie in one lane, so that outputs
leave as pairs, and the bits of r are reversed, so that eight lanes that read 16 bytes each meet no bank twice. Rows
from 64 on are the same again, in further registers.

`P` describes a plane: (bits of an element, elements a row has, elements along k it spans, code plane or not); `L` is
`parameters.decoder_parameters`. A part is 64 elements along k, 8 slots of each quad lane.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def row_bytes(P):
    """Bytes of a plane that a row has in its span."""
    return P[0] * P[1] // 8


@gluon.constexpr_function
def is_wide(P):
    """Whether 64 rows fill whole swizzled blocks of 8 x 128 bytes."""
    return P[0] * P[1] // 8 >= 16


@gluon.constexpr_function
def element(P):
    """Gluon's type of a plane's element."""
    return {8: gl.uint8, 16: gl.uint16, 32: gl.int32}[P[0]]


@gluon.constexpr_function
def held_shape(P, rows):
    """Shape in shared memory of `rows` rows of a plane."""
    if P[0] * P[1] // 8 >= 16:
        return [rows * P[1] * P[0] // 1024, 1024 // P[0]]
    return [rows * P[1]]


@gluon.constexpr_function
def held_layout(P):
    """How 64 rows or more of a plane lie in shared memory."""
    if P[0] * P[1] // 8 >= 16:
        return gl.NVMMASharedLayout(128, P[0], 2)
    return gl.NVMMASharedLayout(0, P[0], 1)


@gluon.constexpr_function
def lane_layout(rows, tail):
    """Layout of [rows rho, 4 lanes, *tail], the tail in registers."""
    rank = 2 + len(tail)

    def basis(axis, value):
        return [value if i == axis else 0 for i in range(rank)]

    registers = []
    for axis in reversed(range(2, rank)):
        step = 1
        while step < tail[axis - 2]:
            registers.append(basis(axis, step))
            step *= 2
    registers.append(basis(0, 8))
    if rows == 128:
        registers.append(basis(0, 64))
    lanes = [basis(1, 1), basis(1, 2), basis(0, 1), basis(0, 2), basis(0, 4)]
    return gl.DistributedLinearLayout(registers, lanes, [basis(0, 16), basis(0, 32)], [], [rows, 4, *tail])


@gluon.constexpr_function
def load_layout(P, rows):
    """Layout that loads rows of a plane as `held_shape` has them: each lane its rows and, of a code plane, words."""
    row = P[1]
    own = row // 4 if P[3] else row
    wide = P[0] * P[1] // 8 >= 16
    across = 1024 // P[0]

    def basis(flat):
        return [flat // across, flat % across] if wide else [flat]

    registers, step = [], 1
    while step < own:
        registers.append(basis(step))
        step *= 2
    registers.append(basis(row))
    if rows == 128:
        registers.append(basis(64 * row))
    quad = [own, 2 * own] if P[3] else [0, 0]
    lanes = [basis(quad[0]), basis(quad[1]), basis(8 * row), basis(4 * row), basis(2 * row)]
    warps = [basis(16 * row), basis(32 * row)]
    shape = [rows * row // across, across] if wide else [rows * row]
    return gl.DistributedLinearLayout(registers, lanes, warps, [], shape)


@gluon.jit
def load_codes(held, P: gl.constexpr, ROWS: gl.constexpr):
    """A lane's words of a code plane, i32[rho, 4, words], zero-extended."""
    LOAD: gl.constexpr = load_layout(P, ROWS)
    WORDS: gl.constexpr = P[1] // 4
    OUT: gl.constexpr = lane_layout(ROWS, [WORDS])
    found = gl.reshape(held.load(LOAD), (ROWS // 16, 2, 2, 2, 2, 4, WORDS))
    found = gl.reshape(gl.permute(found, (0, 4, 3, 2, 1, 5, 6)), (ROWS, 4, WORDS))
    found = gl.convert_layout(found, OUT, assert_trivial=True)
    if P[0] < 32:
        found = found.to(gl.int32)
    return found


@gluon.jit
def load_rows(held, P: gl.constexpr, ROWS: gl.constexpr):
    """A row's elements of a scale plane, i32[rho, elements], zero-extended."""
    LOAD: gl.constexpr = load_layout(P, ROWS)
    OUT: gl.constexpr = gl.SliceLayout(1, lane_layout(ROWS, [P[1]]))
    found = gl.reshape(held.load(LOAD), (ROWS // 16, 2, 2, 2, 2, P[1]))
    found = gl.reshape(gl.permute(found, (0, 4, 3, 2, 1, 5)), (ROWS, P[1]))
    found = gl.convert_layout(found, OUT, assert_trivial=True)
    if P[0] < 32:
        found = found.to(gl.int32)
    return found


@gluon.jit
def load_plane(held, P: gl.constexpr, ROWS: gl.constexpr):
    """A plane's part of a step that has arrived."""
    if P[3]:
        found = load_codes(held, P, ROWS)
    else:
        found = load_rows(held, P, ROWS)
    return found


@gluon.constexpr_function
def own_groups(groups):
    """Scale groups that one lane of a quad works out: the quad shares the work of four or more."""
    return groups // 4 if groups >= 4 else groups


@gluon.jit
def column(values, GROUPS: gl.constexpr):
    """[rows] or [rows, 1] as [rows, 1, 1] that broadcasts to [rows, 4, own groups]."""
    ROWS: gl.constexpr = values.shape[0]
    LAYOUT: gl.constexpr = gl.SliceLayout(1, gl.SliceLayout(2, lane_layout(ROWS, [own_groups(GROUPS)])))
    flat = gl.convert_layout(gl.reshape(values, (ROWS,)), LAYOUT, assert_trivial=True)
    return gl.expand_dims(gl.expand_dims(flat, 1), 2)


@gluon.jit
def group_numbers(GROUPS: gl.constexpr, ROWS: gl.constexpr):
    """The groups that each lane works out, [1, 4, own groups]: every fourth from its own on; all, where there are fewer
    than four."""
    OWN: gl.constexpr = own_groups(GROUPS)
    LAYOUT: gl.constexpr = lane_layout(ROWS, [OWN])
    step = gl.arange(0, OWN, layout=gl.SliceLayout(0, gl.SliceLayout(1, LAYOUT)))
    step = gl.expand_dims(gl.expand_dims(step, 0), 1)
    lane = gl.arange(0, 4, layout=gl.SliceLayout(0, gl.SliceLayout(2, LAYOUT)))
    lane = gl.expand_dims(gl.expand_dims(lane, 0), 2)
    if GROUPS >= 4:
        found = 4 * step + lane
    else:
        found = step + 0 * lane
    return found


@gluon.jit
def of_lane(values, LANE: gl.constexpr):
    """What lane LANE of each quad holds, in every lane."""
    return gl.inline_asm_elementwise(
        "shfl.sync.idx.b32 $0, $1, $2, 0x1c1f, 0xffffffff;", "=r,r,r", [values, values * 0 + LANE],
        dtype=gl.int32, is_pure=True, pack=1,
    )  # fmt: skip


@gluon.jit
def spread(found, GROUPS: gl.constexpr):
    """All groups of a step in every lane, i32[rows, 4, GROUPS], from each lane's own."""
    ROWS: gl.constexpr = found.shape[0]
    if GROUPS >= 4:
        even = gl.join(of_lane(found, 0), of_lane(found, 2))
        odd = gl.join(of_lane(found, 1), of_lane(found, 3))
        found = gl.reshape(gl.join(even, odd), (ROWS, 4, GROUPS))
    return gl.convert_layout(found, lane_layout(ROWS, [GROUPS]), assert_trivial=True)


@gluon.jit
def split_two(words):
    """[rows, 2] to two of [rows]."""
    return gl.split(words)


@gluon.jit
def split_four(words):
    """[rows, 4] to four of [rows]."""
    even, odd = gl.split(gl.reshape(words, (words.shape[0], 2, 2)))
    first, third = gl.split(even)
    second, fourth = gl.split(odd)
    return first, second, third, fourth


@gluon.jit
def half_bits(bits):
    """fp16 values, given as the low 16 bits of i32, as fp32 (exact)."""
    return bits.to(gl.uint16).to(gl.float16, bitcast=True).to(gl.float32)


@gluon.jit
def whole(code):
    """Integers 0 <= code < 2^23 as fp32."""
    return (code | 0x4B000000).to(gl.float32, bitcast=True) - 8388608.0


@gluon.jit
def six_bit_factors(both, low, high, up, down):
    """up d sc in the low and -down dmin mn in the high half of an i32[rows, 4, own groups], each rounded once to fp16.

    low, high: words with sc in the low and mn in the high half, their low nibbles and, 4 bits up, their high pairs of
    bits, between bits of others. sc | mn << 16 becomes fp16 by or-ing into 1024 and 1: sc + 1024 and 1 + mn / 1024,
    both exact. d and dmin are kept within fp16, as sc and mn may be 0.
    """
    pair = gl.inline_asm_elementwise(
        "cvt.rn.satfinite.f16x2.f32 $0, $1, $2;", "=r,r,r",
        [half_bits((both >> 16) & 0xFFFF) * (-1024.0 * down), half_bits(both & 0xFFFF) * up],
        dtype=gl.int32, is_pure=True, pack=1,
    )  # fmt: skip
    _, pair = gl.broadcast(low, pair)
    return gl.inline_asm_elementwise(
        """{
        .reg .b32 a, b;
        mov.b32 b, 0x3C006400;
        lop3.b32 a, $1, 0x000F000F, b, 0xEA;
        lop3.b32 a, $2, 0x00300030, a, 0xEA;
        mov.b32 b, 0xBC00E400;
        add.rn.f16x2 a, a, b;
        mul.rn.f16x2 $0, a, $3;
        }""",
        "=r,r,r,r", [low, high, pair], dtype=gl.int32, is_pure=True, pack=1,
    )  # fmt: skip


@gluon.jit
def pick(words, index, EACH: gl.constexpr, BITS: gl.constexpr, GROUPS: gl.constexpr):
    """Field number `index` of BITS bits, EACH to a word, from the tuple's words [rows]; other bits stay."""
    word = column(words[0], GROUPS)
    for i in gl.static_range(1, len(words)):
        word = gl.where(index < EACH * i, word, column(words[i], GROUPS))
    return word >> (BITS * (index % EACH))


@gluon.jit
def scales(raw, at, up, down, FIRST: gl.constexpr, L: gl.constexpr):
    """(scale, minimum) of a lane's own groups, fp32[rows, 4, own groups], times up and down ([rows] each).

    raw: what the planes hold of the step; FIRST: the first scale plane among them. The minimum is 0.0 where the kind
    has none.
    """
    GROUPS: gl.constexpr = L[7]
    KIND: gl.constexpr = L[6]
    group = group_numbers(GROUPS, up.shape[0])
    up = column(up, GROUPS)
    down = column(down, GROUPS)
    minimum = 0.0
    if KIND == "inline":
        scale = half_bits((column(raw[FIRST - 1], GROUPS) >> 16) & 0xFFFF) * up
    elif KIND == "half":
        if L[7] <= 2:
            words = (raw[FIRST],)
        else:
            words = split_two(raw[FIRST])
        scale = half_bits(pick(words, group, 2, 16, GROUPS) & 0xFFFF) * up
    elif KIND == "halfmin":
        if L[7] == 4:
            words = split_four(raw[FIRST])
        elif L[7] == 2:
            words = split_two(raw[FIRST])
        else:
            words = (raw[FIRST],)
        both = pick(words, group, 1, 32, GROUPS)
        scale = half_bits(both & 0xFFFF) * up
        minimum = -half_bits((both >> 16) & 0xFFFF) * down
    elif KIND == "e8m0":
        e = pick((raw[FIRST],), group, 4, 8, GROUPS) & 255
        scale = gl.where(e < 2, 0x00200000 << (e & 1), (e - 1) << 23).to(gl.float32, bitcast=True) * up
    elif KIND == "e4m3":
        if L[7] == 8:
            words = split_two(raw[FIRST])
        else:
            words = (raw[FIRST],)
        s = pick(words, group, 4, 8, GROUPS) & 255
        low = s & 127
        bits = (low << 20) + (119 << 23)
        found = gl.where(low < 8, whole(low) * 0.0009765625, bits.to(gl.float32, bitcast=True))
        scale = gl.where(s == 127, 0.0, found) * up
    elif KIND == "odd":
        d = half_bits(column(raw[FIRST], GROUPS) & 0xFFFF) * up
        scale = d * (whole(pick((raw[FIRST + 1],), group, 8, 4, GROUPS) & 15) * (2 * L[17]) + L[17])
    elif KIND == "k6min":
        both, first, second, high = split_four(raw[FIRST])
        part = at % (L[8] // (32 * L[2]))
        low = column(gl.where(part == 0, first, second), GROUPS) >> (4 * group)
        six = (low & 0x000F000F) | (((column(high >> (8 * part), GROUPS) << 4) >> (2 * group)) & 0x00300030)
        scale = (half_bits(column(both, GROUPS) & 0xFFFF) * up) * whole(six & 0xFFFF)
        minimum = (half_bits((column(both, GROUPS) >> 16) & 0xFFFF) * down) * whole((six >> 16) & 0xFFFF)
    elif KIND == "k8":
        d = half_bits(column(raw[FIRST], GROUPS) & 0xFFFF) * up
        scale = d * (whole((pick(split_two(raw[FIRST + 1]), group, 4, 8, GROUPS) ^ 128) & 255) - 128.0)
    elif KIND == "k6x16" or KIND == "k6x32":
        d = half_bits(column(raw[FIRST], GROUPS) & 0xFFFF) * up
        low = (column(raw[FIRST + 1], GROUPS) >> (4 * group)) & 15
        high = (column(raw[FIRST + 2], GROUPS) >> (2 * group)) & 3
        scale = d * (whole(low | (high << 4)) - 32.0)
    else:
        gl.static_assert(KIND == "k4min")
        both = column(raw[FIRST], GROUPS)
        first, second = split_two(raw[FIRST + 1])
        words = gl.where(group < 4, column(first, GROUPS), column(second, GROUPS)) >> (4 * (group & 3))
        scale = (half_bits(both & 0xFFFF) * up) * whole(words & 15)
        minimum = (half_bits((both >> 16) & 0xFFFF) * down) * whole((words >> 16) & 15)
    return scale, minimum


@gluon.jit
def factors(raw, at, up, down, FIRST: gl.constexpr, L: gl.constexpr):
    """What a code of each group is multiplied by (low half) and what is added then (high half), in fp16 over the rows'
    units, i32[rows, 4, groups].

    Trit codes come 256 times too large, codebook values 128 too large; see `pairs_of`.
    """
    GROUPS: gl.constexpr = L[7]
    if L[6] == "k6min":
        both, first, second, high = split_four(raw[FIRST])
        group = group_numbers(GROUPS, up.shape[0])
        part = at % (L[8] // (32 * L[2]))
        low = column(gl.where(part == 0, first, second), GROUPS) >> (4 * group)
        high = (column(high >> (8 * part), GROUPS) << 4) >> (2 * group)
        found = six_bit_factors(column(both, GROUPS), low, high, column(up, GROUPS), column(down, GROUPS))
    else:
        scale, minimum = scales(raw, at, up, down, FIRST, L)
        SHRINK: gl.constexpr = 1.0 / 256.0 if L[3] != 0 else 1.0
        OFFSET: gl.constexpr = 128.0 / 16777216.0 if L[10] == 0 else L[9] / (L[10] * 16777216.0)
        shift = minimum
        if OFFSET != 0:
            shift = shift + scale * OFFSET
        found = gl.inline_asm_elementwise(
            "cvt.rn.f16x2.f32 $0, $1, $2;", "=r,r,r",
            [-shift, scale * SHRINK], dtype=gl.int32, is_pure=True, pack=1,
        )  # fmt: skip
    return spread(found, GROUPS)


@gluon.jit
def slot_axis(COUNT: gl.constexpr, LAYOUT: gl.constexpr):
    """0 .. COUNT - 1 along the last of four axes of a layout, [1, 1, 1, COUNT]."""
    flat = gl.arange(0, COUNT, layout=gl.SliceLayout(0, gl.SliceLayout(0, gl.SliceLayout(0, LAYOUT))))
    return gl.expand_dims(gl.expand_dims(gl.expand_dims(flat, 0), 0), 0)


@gluon.jit
def with_slots(words, WORDS: gl.constexpr, EACH: gl.constexpr):
    """i32[rows, 4, WORDS] as [rows, 4, WORDS, 1] that broadcasts to EACH slots a word."""
    LAYOUT: gl.constexpr = lane_layout(words.shape[0], [WORDS, EACH])
    return gl.expand_dims(gl.convert_layout(words, gl.SliceLayout(3, LAYOUT), assert_trivial=True), 3)


@gluon.jit
def part_words(words, WORDS: gl.constexpr, PART_AT: gl.constexpr, PARTS: gl.constexpr):
    """The words of one part of two."""
    if PARTS == 2:
        first, second = gl.split(gl.permute(gl.reshape(words, (words.shape[0], 4, 2, WORDS)), (0, 1, 3, 2)))
        if PART_AT == 0:
            found = first
        else:
            found = second
    else:
        found = words
    return found


@gluon.constexpr_function
def in_place(L):
    """Whether codes of odd slots stay 4 bits up, which spares a shift: codes of 4 to 6 bits without a codebook."""
    return L[3] == 0 and L[0] == 4 and L[10] != 0


@gluon.jit
def bit_pairs(
    words, B: gl.constexpr, P: gl.constexpr, PART_AT: gl.constexpr, PARTS: gl.constexpr, UP: gl.constexpr,
    ODD: gl.constexpr,
):  # fmt: skip
    """Codes of a part from a plane of B bits, i32[rows, 4, 8]: e = 0 in the low half, e = 1 in the high half; UP bits
    up, and ODD more in odd slots."""
    BITS: gl.constexpr = P[0]
    ROWS: gl.constexpr = words.shape[0]
    MASK: gl.constexpr = (1 << B) - 1
    if BITS < 32:
        gl.static_assert(PARTS * 8 * 2 * B == BITS)
    if 16 * B >= 32:
        WORDS: gl.constexpr = B // 2
        own = part_words(words, WORDS, PART_AT, PARTS)
    else:
        WORDS: gl.constexpr = 1
        own = words >> (8 * B * PART_AT)
    EACH: gl.constexpr = 8 // WORDS
    LAYOUT: gl.constexpr = lane_layout(ROWS, [WORDS, EACH])
    slot = slot_axis(EACH, LAYOUT)
    shift = slot * B
    up = UP + ODD * (slot & 1)
    own = with_slots(own, WORDS, EACH)
    if BITS == 32:
        moved = gl.where(shift >= up, own >> gl.maximum(shift - up, 0), own << gl.maximum(up - shift, 0))
        pairs = moved & ((MASK * 0x00010001) << up)
    else:
        pairs = (((own >> shift) & MASK) | (((own >> (shift + BITS // 2)) & MASK) << 16)) << up
    return gl.convert_layout(gl.reshape(pairs, (ROWS, 4, 8)), lane_layout(ROWS, [8]), assert_trivial=True)


@gluon.jit
def trit_pairs(raw, PART_AT: gl.constexpr, L: gl.constexpr):
    """Digits 0, 1, 2 of base-3 bytes, times 256, as `bit_pairs` has codes; see `decode.trit_pairs`.

    Digit n of byte b is bits 8 and 9 of 3 ((b 3^n) mod 256), two bytes at a time.
    """
    COUNT0: gl.constexpr = L[3]
    COUNT1: gl.constexpr = L[4]
    COUNT2: gl.constexpr = L[5]
    END0: gl.constexpr = COUNT0 * 5 // 8
    END1: gl.constexpr = END0 + COUNT1 * 5 // 8
    ROWS: gl.constexpr = raw[0].shape[0]
    LAYOUT: gl.constexpr = lane_layout(ROWS, [1, 8])
    slot = slot_axis(8, LAYOUT) + 8 * PART_AT
    lane = gl.arange(0, 4, layout=gl.SliceLayout(0, gl.SliceLayout(2, gl.SliceLayout(3, LAYOUT))))
    lane = gl.expand_dims(gl.expand_dims(gl.expand_dims(lane, 0), 2), 3)
    if COUNT0 == 32:
        low, high = gl.split(raw[0])
        low = with_slots(gl.reshape(low, (ROWS, 4, 1)), 1, 8)
        high = with_slots(gl.reshape(high, (ROWS, 4, 1)), 1, 8)
        word0 = gl.where((slot & 2) == 0, low, high)
    else:
        word0 = with_slots(raw[0], 1, 8)
    word0 = word0 >> (8 * (slot & 1))
    word1 = with_slots(raw[1], 1, 8)
    if COUNT1 == 16:
        word1 = word1 >> (8 * ((slot - END0) & 1))
    else:
        word1 = (word1 & 0xFF) | ((word1 & 0xFF00) << 8)
    TAIL: gl.constexpr = gl.SliceLayout(1, gl.SliceLayout(2, gl.SliceLayout(3, LAYOUT)))
    tail = gl.convert_layout(gl.reshape(raw[2], (ROWS,)), TAIL, assert_trivial=True)
    tail = gl.expand_dims(gl.expand_dims(gl.expand_dims(tail, 1), 2), 3)
    word2 = tail >> (8 * ((2 * lane) % COUNT2))
    word2 = (word2 & 0xFF) | ((word2 & 0xFF00) << 8)
    digit1 = (slot - END0) // (COUNT1 // 8)
    digit2 = (8 * (slot - END1) + 2 * lane) // COUNT2
    digit = gl.where(slot < END0, slot // (COUNT0 // 8), gl.where(slot < END1, digit1, digit2))
    power = gl.where(digit == 0, 1, gl.where(digit == 1, 3, gl.where(digit == 2, 9, gl.where(digit == 3, 27, 81))))
    word = gl.where(slot < END0, word0, gl.where(slot < END1, word1, word2)) & 0x00FF00FF
    pairs = (((word * power) & 0x00FF00FF) * 3) & 0x03000300
    return gl.convert_layout(gl.reshape(pairs, (ROWS, 4, 8)), lane_layout(ROWS, [8]), assert_trivial=True)


@gluon.jit
def looked_up(pairs, L: gl.constexpr):
    """128 plus the codebook's signed values of codes 0..15, in place; two look-ups of 8 bytes and a choice."""
    return gl.inline_asm_elementwise(
        """{
        .reg .b32 s, a, b, m;
        shr.u32 s, $1, 12;
        or.b32 s, s, $1;
        and.b32 m, s, 0x0077;
        prmt.b32 a, $2, $3, m;
        prmt.b32 b, $4, $5, m;
        shr.u32 m, s, 1;
        and.b32 m, m, 0x0044;
        or.b32 m, m, 0x0010;
        prmt.b32 a, a, b, m;
        prmt.b32 $0, a, 0, 0x4140;
        }""",
        "=r,r,r,r,r,r",
        [pairs, pairs * 0 + (L[11] ^ -2139062144), pairs * 0 + (L[12] ^ -2139062144),
         pairs * 0 + (L[13] ^ -2139062144), pairs * 0 + (L[14] ^ -2139062144)],
        dtype=gl.int32, is_pure=True, pack=1,
    )  # fmt: skip


@gluon.jit
def pairs_of(raw, planes: gl.constexpr, PART_AT: gl.constexpr, PARTS: gl.constexpr, L: gl.constexpr):
    """What codes stand for before scaling, two integers an i32[rows, 4, 8]: the code (16 times it in odd slots, where
    `in_place` says so), 256 times a trit, or 128 plus the codebook's value. Read as fp16 they are subnormal: the
    integer times 2^-24."""
    if L[3] != 0:
        pairs = trit_pairs(raw, PART_AT, L)
    else:
        P0: gl.constexpr = planes[0]
        ODD: gl.constexpr = 4 if in_place(L) else 0
        pairs = bit_pairs(raw[0], L[0], P0, PART_AT, PARTS, 0, ODD)
        if L[1] != 0:
            P1: gl.constexpr = planes[1]
            pairs = pairs | bit_pairs(raw[1], L[1], P1, PART_AT, PARTS, L[0], ODD)
        if L[10] == 0:
            pairs = looked_up(pairs, L)
    return pairs


@gluon.jit
def part_factors(found, GROUPS: gl.constexpr, PART_AT: gl.constexpr, PARTS: gl.constexpr):
    """The factors of one part's groups, i32[rows, 4, groups of a part], of those of the step."""
    if GROUPS < 2 or PARTS == 1:
        own = found
    else:
        gl.static_assert(PARTS == 2)
        first, second = gl.split(gl.permute(gl.reshape(found, (found.shape[0], 4, 2, GROUPS // 2)), (0, 1, 3, 2)))
        if PART_AT == 0:
            own = first
        else:
            own = second
    return own


@gluon.jit
def sixteenths(found):
    """Packed factors whose low halves are for codes 16 times too large."""
    return gl.inline_asm_elementwise(
        "mul.rn.f16x2 $0, $1, $2;", "=r,r,r", [found, found * 0 + 0x3C002C00], dtype=gl.int32, is_pure=True, pack=1
    )


@gluon.jit
def decode_part(
    raw, found, planes: gl.constexpr, PART_AT: gl.constexpr, PARTS: gl.constexpr, L: gl.constexpr, BF16: gl.constexpr
):  # fmt: skip
    """Decoded weights of part PART_AT over the rows' units, two fp16 or bf16 an i32[rows, 4, 8]; found: `factors`.

    One fused multiply-add makes two in fp16, of codes read as subnormal fp16 (times 2^-24) and the scales times 2^24;
    bf16 rounds that result once more.
    """
    pairs = pairs_of(raw, planes, PART_AT, PARTS, L)
    own = part_factors(found, L[7], PART_AT, PARTS)
    GROUPS: gl.constexpr = own.shape[2]
    ROWS: gl.constexpr = pairs.shape[0]
    LAYOUT: gl.constexpr = lane_layout(ROWS, [GROUPS, 8 // GROUPS])
    pairs = gl.convert_layout(gl.reshape(pairs, (ROWS, 4, GROUPS, 8 // GROUPS)), LAYOUT, assert_trivial=True)
    own = gl.expand_dims(gl.convert_layout(own, gl.SliceLayout(3, LAYOUT), assert_trivial=True), 3)
    if in_place(L):
        own = gl.where((slot_axis(8 // GROUPS, LAYOUT) & 1) == 0, own, sixteenths(own))
    _, own = gl.broadcast(pairs, own)
    if BF16:
        made = gl.inline_asm_elementwise(
            """{
            .reg .b32 v, s, t;
            .reg .b16 l, h;
            .reg .f32 a, b;
            mov.b32 {l, h}, $2;
            mov.b32 s, {l, l};
            mov.b32 t, {h, h};
            fma.rn.f16x2 v, $1, s, t;
            mov.b32 {l, h}, v;
            cvt.f32.f16 a, l;
            cvt.f32.f16 b, h;
            cvt.rn.bf16x2.f32 $0, b, a;
            }""",
            "=r,r,r", [pairs, own], dtype=gl.int32, is_pure=True, pack=1,
        )  # fmt: skip
    else:
        made = gl.inline_asm_elementwise(
            """{
            .reg .b32 s, t;
            .reg .b16 l, h;
            mov.b32 {l, h}, $2;
            mov.b32 s, {l, l};
            mov.b32 t, {h, h};
            fma.rn.f16x2 $0, $1, s, t;
            }""",
            "=r,r,r", [pairs, own], dtype=gl.int32, is_pure=True, pack=1,
        )  # fmt: skip
    return gl.convert_layout(gl.reshape(made, (ROWS, 4, 8)), lane_layout(ROWS, [8]), assert_trivial=True)


@gluon.jit
def as_operand(pairs, LAYOUT: gl.constexpr, BF16: gl.constexpr):
    """Decoded pairs i32[rows, 4, 8] as [rows, 64] in the order of k, in the matrix unit's register operand."""
    if BF16:
        low, high = gl.inline_asm_elementwise(
            "mov.b32 {$0, $1}, $2;", "=h,=h,r", [pairs], dtype=(gl.bfloat16, gl.bfloat16), is_pure=True, pack=1
        )
    else:
        low, high = gl.inline_asm_elementwise(
            "mov.b32 {$0, $1}, $2;", "=h,=h,r", [pairs], dtype=(gl.float16, gl.float16), is_pure=True, pack=1
        )
    found = gl.reshape(gl.permute(gl.join(low, high), (0, 2, 1, 3)), (pairs.shape[0], 64))
    return gl.convert_layout(found, LAYOUT, assert_trivial=True)
