"""Device code of a step's attention: rotated queries and keys, keys and values in a cache that never moves.

The cache holds keys and values [key heads, length, D] of a layer; `Position` says how many tokens are in it before this
step. A head is D wide, W (a power of two) in registers.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def pairs(Source, Bias, head, inside, BIAS: tl.constexpr, D: tl.constexpr, W: tl.constexpr):
    """Heads of a token, [heads, W] in fp32, + bias, and of each element the one it is turned with, half a head away.

    Source: the token's first head.
    """
    d = tl.arange(0, W)
    other = tl.where(d < D // 2, d + D // 2, d - D // 2)
    wide = inside[:, None] & (d < D)[None, :]
    at = head[:, None] * D + d[None, :]
    across = head[:, None] * D + other[None, :]
    x = tl.load(Source + at, mask=wide, other=0).to(tl.float32)
    partner = tl.load(Source + across, mask=wide, other=0).to(tl.float32)
    if BIAS:
        x += tl.load(Bias + at, mask=wide, other=0).to(tl.float32)
        partner += tl.load(Bias + across, mask=wide, other=0).to(tl.float32)
    return x, partner


@triton.jit
def turned(
    x, partner, Norm, Cos, Sin, position, eps, offset, NORM: tl.constexpr, D: tl.constexpr, W: tl.constexpr
):  # fmt: skip
    """`pairs` normed, then turned by the position's angles: x'[i] = x[i] cos[i] -+ x[i +- D / 2] sin[i], as
    transformers' rotate_half."""
    d = tl.arange(0, W)
    other = tl.where(d < D // 2, d + D // 2, d - D // 2)
    if NORM:
        factor = tl.rsqrt(tl.sum(x * x, 1) / D + eps)[:, None]
        x = x * factor * (tl.load(Norm + d, mask=d < D, other=0).to(tl.float32) + offset)[None, :]
        partner = partner * factor * (tl.load(Norm + other, mask=d < D, other=0).to(tl.float32) + offset)[None, :]
    cos = tl.load(Cos + position * D + d, mask=d < D, other=0)[None, :]
    sin = tl.load(Sin + position * D + d, mask=d < D, other=0)[None, :]
    return x * cos + tl.where(d < D // 2, -1.0, 1.0)[None, :] * partner * sin


@triton.jit
def plain(Source, Bias, head, inside, BIAS: tl.constexpr, D: tl.constexpr, W: tl.constexpr):
    """Heads of a token, [heads, W] in fp32, + bias."""
    d = tl.arange(0, W)
    wide = inside[:, None] & (d < D)[None, :]
    at = head[:, None] * D + d[None, :]
    x = tl.load(Source + at, mask=wide, other=0).to(tl.float32)
    if BIAS:
        x += tl.load(Bias + at, mask=wide, other=0).to(tl.float32)
    return x


@triton.jit(do_not_specialize=["length"])
def rotate(
    Q, K, V, QBias, KBias, VBias, QNorm, KNorm, Cos, Sin, Position, Turned, Keys, Values,
    q_stride, k_stride, v_stride, heads, key_heads, length, eps, offset,
    BIAS: tl.constexpr, NORM: tl.constexpr, D: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Rotated queries to Turned[token, heads, D], rotated keys and values to the cache. Grid (tokens, blocks of BLOCK
    query heads, then of key heads twice)."""
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    token = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    position = tl.load(Position).to(tl.int64) + token
    queries = tl.cdiv(heads, BLOCK)
    shared = tl.cdiv(key_heads, BLOCK)
    d = tl.arange(0, W)
    if block < queries:
        head = block * BLOCK + tl.arange(0, BLOCK)
        inside = head < heads
        x, partner = pairs(Q + token * q_stride, QBias, head, inside, BIAS, D, W)
        x = turned(x, partner, QNorm, Cos, Sin, position, eps, offset, NORM, D, W)
        target = Turned + (token * heads + head[:, None]) * D + d[None, :]
        tl.store(target, x.to(Turned.dtype.element_ty), mask=inside[:, None] & (d < D)[None, :])
    else:
        head = (block - queries) % shared * BLOCK + tl.arange(0, BLOCK)
        inside = head < key_heads
        at = (head[:, None].to(tl.int64) * length + position) * D + d[None, :]
        wide = inside[:, None] & (d < D)[None, :]
        if block - queries < shared:
            x, partner = pairs(K + token * k_stride, KBias, head, inside, BIAS, D, W)
            x = turned(x, partner, KNorm, Cos, Sin, position, eps, offset, NORM, D, W)
            tl.store(Keys + at, x.to(Keys.dtype.element_ty), mask=wide)
        else:
            x = plain(V + token * v_stride, VBias, head, inside, BIAS, D, W)
            tl.store(Values + at, x.to(Values.dtype.element_ty), mask=wide)


@triton.jit
def tile_of(keys, values, at, low, high, MASKED: tl.constexpr, D: tl.constexpr, W: tl.constexpr):
    """Keys and values numbered `at`; MASKED: zeros outside [low, high)."""
    d = tl.arange(0, W)
    place = at[:, None].to(tl.int64) * D + d[None, :]
    wide = (d < D)[None, :]
    if MASKED:
        wide = wide & ((at >= low) & (at < high))[:, None]
    return tl.load(keys + place, mask=wide, other=0), tl.load(values + place, mask=wide, other=0)


@triton.jit
def tile_added(
    q, k, v, at, low, high, most, total, acc, row_at, factor, MASKED: tl.constexpr, WINDOW: tl.constexpr
):  # fmt: skip
    """Running maximum of q k, and sum and product of a softmax, with the keys numbered `at` joined in; factor = scale *
    log2 e.

    Keys outside [low, high) are left out, and those that row_at, the row's own number, must not see.
    """
    s = tl.dot(q, tl.trans(k), input_precision="ieee")
    if MASKED:
        seen = ((at >= low) & (at < high))[None, :] & (at[None, :] <= row_at[:, None])
        if WINDOW:
            seen = seen & (at[None, :] > row_at[:, None] - WINDOW)
        s = tl.where(seen, s, float("-inf"))
    now = tl.maximum(most, tl.max(s, 1))
    # A row that has seen no key yet stays at zero.
    shift = tl.where(now == float("-inf"), 0.0, now)
    p = tl.exp2(s * factor - (shift * factor)[:, None])
    kept = tl.exp2((most - shift) * factor)
    acc = tl.dot(p.to(v.dtype), v, acc * kept[:, None], input_precision="ieee")
    return now, total * kept + tl.sum(p, 1), acc


@triton.jit(do_not_specialize=["length", "tokens"])
def attend_many(
    Q, Keys, Values, Out, Position, tokens, heads, length, scale,
    GROUP: tl.constexpr, WINDOW: tl.constexpr, D: tl.constexpr, W: tl.constexpr,
    ROWS: tl.constexpr, KEYS: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """out[token, heads, D] = softmax(scale q k^T, causal) v for q[token, heads, D]; key head = head / GROUP.

    WINDOW: how many tokens a row sees, itself included; 0: all. Grid (ceil(tokens / ROWS), heads).
    """
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    # The longest rows are begun first.
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    head = tl.program_id(1)
    position = tl.load(Position)
    row = block * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, W)
    wide = (row < tokens)[:, None] & (d < D)[None, :]
    at = (row[:, None].to(tl.int64) * heads + head) * D + d[None, :]
    q = tl.load(Q + at, mask=wide, other=0)
    keys = Keys + (head // GROUP).to(tl.int64) * length * D
    values = Values + (head // GROUP).to(tl.int64) * length * D
    row_at = position + row
    high = position + tl.minimum((block + 1) * ROWS, tokens)
    low = 0
    if WINDOW:
        low = tl.maximum(0, position + block * ROWS + 1 - WINDOW) // KEYS * KEYS
    most = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, W), tl.float32)
    # Up to here every row sees every key.
    whole = low if WINDOW else (position + block * ROWS + 1) // KEYS * KEYS
    for start in range(low, whole, KEYS):
        at_keys = start + tl.arange(0, KEYS)
        k, v = tile_of(keys, values, at_keys, low, high, False, D, W)
        most, total, acc = tile_added(
            q, k, v, at_keys, low, high, most, total, acc, row_at, scale * LOG2E, False, WINDOW
        )  # fmt: skip
    for start in range(whole, high, KEYS):
        at_keys = start + tl.arange(0, KEYS)
        k, v = tile_of(keys, values, at_keys, low, high, True, D, W)
        most, total, acc = tile_added(
            q, k, v, at_keys, low, high, most, total, acc, row_at, scale * LOG2E, True, WINDOW
        )  # fmt: skip
    total = tl.where(total > 0, total, 1.0)
    tl.store(Out + at, (acc / total[:, None]).to(Out.dtype.element_ty), mask=wide)


@triton.jit(do_not_specialize=["length"])
def attend_one(
    Q, K, V, QBias, KBias, VBias, QNorm, KNorm, Cos, Sin, Position, Keys, Values, Out, Part, Count,
    length, eps, offset, scale,
    BIAS: tl.constexpr, NORM: tl.constexpr, GROUP: tl.constexpr, WINDOW: tl.constexpr, D: tl.constexpr, W: tl.constexpr,
    ROWS: tl.constexpr, LEAST: tl.constexpr, KEYS: tl.constexpr, SPLITS: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """One token's attention, its key and value put into the cache: `rotate` and `attend_many` in one launch.

    Keys are cut into at most SPLITS parts of whole KEYS; the program of a key head that ends last joins them, in their
    order. Part: fp32[key heads, SPLITS, GROUP, D + 2]; Count: i32[key heads], zero before and after. Grid (key heads,
    SPLITS). ROWS: query heads of a key head, at least 16; ROWS / LEAST of them, at least GROUP, are joined.
    """
    shared = tl.program_id(0)
    split = tl.program_id(1)
    if PDL:
        gdc_launch_dependents()
    # What the launches of earlier tokens wrote: this token's first one began when they had ended.
    position = tl.load(Position)
    first = tl.maximum(0, position + 1 - WINDOW) if WINDOW else 0
    count = position + 1 - first
    each = tl.cdiv(tl.cdiv(count, SPLITS), KEYS) * KEYS
    active = tl.cdiv(count, each)
    if split < active:
        keys = Keys + shared.to(tl.int64) * length * D
        values = Values + shared.to(tl.int64) * length * D
        low = first + split * each
        high = tl.minimum(low + each, position + 1)
        own = split == active - 1
        # All but this token's own, whose key and value come from registers.
        earlier = tl.minimum(high, position)
        numbers = low + tl.arange(0, KEYS)
        k, v = tile_of(keys, values, numbers, low, earlier, True, D, W)
        if PDL:
            gdc_wait()
        row = tl.arange(0, ROWS)
        d = tl.arange(0, W)
        one = shared + tl.zeros((1,), tl.int32)
        q, q_partner = pairs(Q, QBias, shared * GROUP + row, row < GROUP, BIAS, D, W)
        new, new_partner = pairs(K, KBias, one, one >= 0, BIAS, D, W)
        value = plain(V, VBias, one, one >= 0, BIAS, D, W).to(Values.dtype.element_ty)
        wide = (row < GROUP)[:, None] & (d < D)[None, :]
        head = shared * GROUP + row
        at = position.to(tl.int64)
        key = turned(new, new_partner, KNorm, Cos, Sin, at, eps, offset, NORM, D, W).to(Keys.dtype.element_ty)
        if own:
            place = at * D + d[None, :] + tl.zeros((1, 1), tl.int64)
            tl.store(keys + place, key, mask=(d < D)[None, :])
            tl.store(values + place, value, mask=(d < D)[None, :])
        query = turned(q, q_partner, QNorm, Cos, Sin, at, eps, offset, NORM, D, W).to(Q.dtype.element_ty)
        most = tl.full((ROWS,), float("-inf"), tl.float32)
        total = tl.zeros((ROWS,), tl.float32)
        acc = tl.zeros((ROWS, W), tl.float32)
        row_at = position + tl.zeros((ROWS,), tl.int32)
        most, total, acc = tile_added(
            query, tl.where((numbers == position)[:, None], key, k), tl.where((numbers == position)[:, None], value, v),
            numbers, low, high, most, total, acc, row_at, scale * LOG2E, True, 0,
        )  # fmt: skip
        for start in range(low + KEYS, high, KEYS):
            numbers = start + tl.arange(0, KEYS)
            k, v = tile_of(keys, values, numbers, low, earlier, True, D, W)
            most, total, acc = tile_added(
                query, tl.where((numbers == position)[:, None], key, k),
                tl.where((numbers == position)[:, None], value, v),
                numbers, low, high, most, total, acc, row_at, scale * LOG2E, True, 0,
            )  # fmt: skip
        out = Out + head[:, None] * D + d[None, :]
        if active == 1:
            tl.store(out, (acc / total[:, None]).to(Out.dtype.element_ty), mask=wide)
        else:
            STRIDE: tl.constexpr = GROUP * (D + 2)
            part = Part + (shared * SPLITS + split) * STRIDE
            tl.store(part + row[:, None] * D + d[None, :], acc, mask=wide)
            tl.store(part + GROUP * D + row, most, mask=row < GROUP)
            tl.store(part + GROUP * (D + 1) + row, total, mask=row < GROUP)
            tl.debug_barrier()
            if tl.atomic_add(Count + shared, 1, sem="acq_rel") == active - 1:
                parts = Part + shared * (SPLITS * STRIDE) + tl.arange(0, SPLITS) * STRIDE
                there = tl.arange(0, SPLITS) < active
                # All parts are asked for at once: one wait for the cache, whatever the number of heads.
                r = tl.arange(0, ROWS // LEAST)
                asked = there[:, None] & (r < GROUP)[None, :]
                highs = tl.load(parts[:, None] + GROUP * D + r[None, :], mask=asked, other=0, cache_modifier=".cg")
                sums = tl.load(parts[:, None] + GROUP * (D + 1) + r[None, :], mask=asked, other=0, cache_modifier=".cg")
                held = tl.load(
                    parts[:, None, None] + r[None, :, None] * D + d[None, None, :],
                    mask=asked[:, :, None] & (d < D)[None, None, :], other=0, cache_modifier=".cg",
                )  # fmt: skip
                highs = tl.where(asked, highs, float("-inf"))
                most_of = tl.max(highs, 0)
                share = tl.exp2((highs - tl.where(most_of == float("-inf"), 0.0, most_of)[None, :]) * (scale * LOG2E))
                whole = tl.sum(sums * share, 0)
                result = tl.sum(held * share[:, :, None], 0) / tl.where(whole > 0, whole, 1.0)[:, None]
                joined = Out + (shared * GROUP + r[:, None]) * D + d[None, :]
                tl.store(joined, result.to(Out.dtype.element_ty), mask=(r < GROUP)[:, None] & (d < D)[None, :])
                tl.store(Count + shared, 0)
