"""Device code in Gluon for scales: what codes of each group are multiplied by and what is added; see `lane_layouts`."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from warptile.layouts.triton.lane_layouts import lane_layout
from warptile.layouts.triton.scaled_pairs import eight_bit_scales, paired


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
def eight_bit_pairs(raw, up, FIRST: gl.constexpr):
    """up d sc of a lane's two of eight groups as an fp16 pair, i32[rows, 4, 1]: lane g has groups g and g + 4.

    up d is kept within fp16, as sc may be 0.
    """
    d = half_bits(column(raw[FIRST], 4) & 0xFFFF) * column(up, 4)
    pair = gl.inline_asm_elementwise(
        "cvt.rn.satfinite.f16x2.f32 $0, $1, $1;", "=r,f", [d], dtype=gl.int32, is_pure=True, pack=1
    )
    first, second = split_two(raw[FIRST + 1])
    lane = group_numbers(4, up.shape[0])
    pick, pair = gl.broadcast(lane * 0x1111 + 0x4400, pair)
    first, _ = gl.broadcast(column(first, 4), pair)
    second, _ = gl.broadcast(column(second, 4), pair)
    return gl.inline_asm_elementwise(
        eight_bit_scales(), "=r,r,r,r,r", [first, second, pick, pair], dtype=gl.int32, is_pure=True, pack=1
    )


@gluon.jit
def factors(raw, at, up, down, FIRST: gl.constexpr, L: gl.constexpr, DIRECT: gl.constexpr):
    """`own_factors`, or with DIRECT `direct_factors`, of all groups, i32[rows, 4, groups]; where `paired`, scales alone
    of groups g and g + groups / 2 as one pair, i32[rows, 4, groups / 2]."""
    if paired(L):
        COUNT: gl.constexpr = L[7] // 2
        found = eight_bit_pairs(raw, up, FIRST)
    else:
        COUNT: gl.constexpr = L[7]
        found = own_factors(raw, at, up, down, FIRST, L)
    if DIRECT:
        found = direct_factors(found, L)
    return spread(found, COUNT)


@gluon.jit
def direct_factors(found, L: gl.constexpr):
    """What `own_factors` found, each half rounded to bf16: what is multiplied times 2^109, for codes that are read as
    bf16 count 2^-133 and not 2^-24, and once more times 256 for trits, which are not 256 times too large then."""
    POWER: gl.constexpr = 2.0**117 if L[3] != 0 else 2.0**109
    return gl.inline_asm_elementwise(
        """{
        .reg .b16 l, h;
        .reg .f32 a, b;
        mov.b32 {l, h}, $1;
        cvt.f32.f16 a, l;
        cvt.f32.f16 b, h;
        mul.rn.f32 a, a, $2;
        cvt.rn.bf16x2.f32 $0, b, a;
        }""",
        "=r,r,f", [found, found.to(gl.float32) * 0.0 + POWER], dtype=gl.int32, is_pure=True, pack=1,
    )  # fmt: skip


@gluon.jit
def own_factors(raw, at, up, down, FIRST: gl.constexpr, L: gl.constexpr):
    """What a code of each group is multiplied by (low half) and what is added then (high half), in fp16 over the rows'
    units, i32[rows, 4, own groups].

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
    return found
