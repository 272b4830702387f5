"""Device decoders in Gluon: from a lane's packed words to the matrix unit's operand; see `lane_layouts`.

A part is 64 elements along k, 8 slots of each quad lane. `L` is `parameters.decoder_parameters` and, last,
whether codes are made several at a time (`joined`).
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from warptile.layouts.triton.lane_layouts import lane_layout
from warptile.layouts.triton.lane_six import six_pairs
from warptile.layouts.triton.scaled_pairs import half_scaled_pairs, joined, paired, scaled_pairs, times


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
def in_place(L, direct):
    """Whether codes of odd slots stay 4 bits up, which spares a shift: codes of 4 to 6 bits without a codebook; where
    bf16 is made directly only those of 4, since what it reads must stay below 256. `six_pairs` leaves none there."""
    return L[3] == 0 and L[0] == 4 and L[10] != 0 and not (direct and L[1] != 0) and not (joined(L) and L[1] == 2)


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
def digit_pairs(word, power):
    """256 times digit n of two base-3 bytes, one in each half of i32, where power = 3^n.

    It is u(n + 1) - 3 u(n), u(n) = b 3^n without its lowest 8 bits: digits beside each other share what lies between
    them. 243 * 255 still fits a half.
    """
    UPPER: gl.constexpr = -0x00FF0100
    return ((word * (3 * power)) & UPPER) - 3 * ((word * power) & UPPER)


@gluon.jit
def trit_pairs(raw, PART_AT: gl.constexpr, L: gl.constexpr):
    """Digits 0, 1, 2 of base-3 bytes, times 256, as `bit_pairs` has codes; see `code_decode.trit_pairs`.

    Digit n of byte b is bits 8 and 9 of 3 ((b 3^n) mod 256), two bytes at a time; `digit_pairs` has another way.
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
    if joined(L):
        pairs = digit_pairs(word, power)
    else:
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
def pairs_of(
    raw, planes: gl.constexpr, PART_AT: gl.constexpr, PARTS: gl.constexpr, L: gl.constexpr, DIRECT: gl.constexpr
):  # fmt: skip
    """What codes stand for before scaling, two integers an i32[rows, 4, 8]: the code (16 times it in odd slots, where
    `in_place` says so), 256 times a trit, or 128 plus the codebook's value. Read as fp16 they are subnormal: the
    integer times 2^-24. With DIRECT all are below 256 (a trit is itself): as bf16 the integer times 2^-133, of which
    only those below 128 are subnormal, but 2^-133 is the spacing of those below 256 as well."""
    if L[3] != 0:
        pairs = trit_pairs(raw, PART_AT, L)
        if DIRECT:
            pairs = pairs >> 8
    else:
        P0: gl.constexpr = planes[0]
        ODD: gl.constexpr = 4 if in_place(L, DIRECT) else 0
        if joined(L) and L[0] == 4 and L[1] == 2:
            gl.static_assert(P0[0] == 32 and planes[1][0] == 32)
            pairs = six_pairs(part_words(raw[0], 2, PART_AT, PARTS), part_words(raw[1], 1, PART_AT, PARTS))
        else:
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
def sixteenths(found, DIRECT: gl.constexpr):
    """Packed factors whose low halves are for codes 16 times too large."""
    TEXT: gl.constexpr = "mul.rn.bf16x2 $0, $1, $2;" if DIRECT else "mul.rn.f16x2 $0, $1, $2;"
    SIXTEENTH: gl.constexpr = 0x3F803D80 if DIRECT else 0x3C002C00
    return gl.inline_asm_elementwise(
        TEXT, "=r,r,r", [found, found * 0 + SIXTEENTH], dtype=gl.int32, is_pure=True, pack=1
    )


@gluon.jit
def decode_part(
    raw, found, planes: gl.constexpr, PART_AT: gl.constexpr, PARTS: gl.constexpr, L: gl.constexpr, BF16: gl.constexpr,
    DIRECT: gl.constexpr,
):  # fmt: skip
    """Decoded weights of part PART_AT over the rows' units, two fp16 or bf16 an i32[rows, 4, 8]; found: `factors`.

    One fused multiply-add makes two in fp16, of codes read as subnormal fp16 (times 2^-24) and the scales times 2^24;
    bf16 rounds that result once more. With DIRECT it makes two in bf16, of codes read as bf16 (times 2^-133) and
    `direct_factors`.
    """
    pairs = pairs_of(raw, planes, PART_AT, PARTS, L, DIRECT)
    if paired(L):
        gl.static_assert(PARTS == 2)
        own = found
    else:
        own = part_factors(found, L[7], PART_AT, PARTS)
    GROUPS: gl.constexpr = own.shape[2]
    ROWS: gl.constexpr = pairs.shape[0]
    LAYOUT: gl.constexpr = lane_layout(ROWS, [GROUPS, 8 // GROUPS])
    pairs = gl.convert_layout(gl.reshape(pairs, (ROWS, 4, GROUPS, 8 // GROUPS)), LAYOUT, assert_trivial=True)
    own = gl.expand_dims(gl.convert_layout(own, gl.SliceLayout(3, LAYOUT), assert_trivial=True), 3)
    if paired(L):
        KIND: gl.constexpr = "bf16x2" if DIRECT else "f16x2"
        POWER: gl.constexpr = 2.0**-133 if DIRECT else 2.0**-24
        gl.static_assert(not in_place(L, DIRECT))
        shift = times(own, -L[9] / L[10] * POWER, KIND)
        _, scale = gl.broadcast(pairs, own)
        _, shift = gl.broadcast(pairs, shift)
        made = half_scaled_pairs(pairs, scale, shift, PART_AT, KIND, BF16 and not DIRECT)
        return gl.convert_layout(gl.reshape(made, (ROWS, 4, 8)), lane_layout(ROWS, [8]), assert_trivial=True)
    if in_place(L, DIRECT):
        own = gl.where((slot_axis(8 // GROUPS, LAYOUT) & 1) == 0, own, sixteenths(own, DIRECT))
    _, own = gl.broadcast(pairs, own)
    if BF16 and not DIRECT:
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
        made = scaled_pairs(pairs, own, "bf16x2" if DIRECT else "f16x2")
    return gl.convert_layout(gl.reshape(made, (ROWS, 4, 8)), lane_layout(ROWS, [8]), assert_trivial=True)


@gluon.jit
def as_operand(pairs, LAYOUT: gl.constexpr, BF16: gl.constexpr):
    """Decoded pairs i32[rows, 4, slots] as [rows, 8 slots] in the order of k, in the matrix unit's register operand."""
    if BF16:
        low, high = gl.inline_asm_elementwise(
            "mov.b32 {$0, $1}, $2;", "=h,=h,r", [pairs], dtype=(gl.bfloat16, gl.bfloat16), is_pure=True, pack=1
        )
    else:
        low, high = gl.inline_asm_elementwise(
            "mov.b32 {$0, $1}, $2;", "=h,=h,r", [pairs], dtype=(gl.float16, gl.float16), is_pure=True, pack=1
        )
    found = gl.reshape(gl.permute(gl.join(low, high), (0, 2, 1, 3)), (pairs.shape[0], 8 * pairs.shape[2]))
    return gl.convert_layout(found, LAYOUT, assert_trivial=True)
