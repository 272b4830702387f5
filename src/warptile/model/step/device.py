"""Device code of a step's small parts: norms with the sum before them, gated products, and the likeliest token."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def normed(x, weight, width, eps):
    """x / sqrt(mean(x^2) + eps) * weight over a row in fp32."""
    return x * tl.rsqrt(tl.sum(x * x, 0) / width + eps) * weight


@triton.jit
def add_norm(
    X, Y, After, Weight, Out, width, eps, offset, ADD: tl.constexpr, AFTER: tl.constexpr, BLOCK: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """ADD: x += y, y normed by `After` first where AFTER. Then out = norm(x) by `Weight`. Grid (rows of `width`,).

    offset is added to both weights. Sums and products are fp32; x + y and a normed y are rounded as they are stored.
    """
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < width
    if PDL:
        gdc_launch_dependents()
    weight = tl.load(Weight + at, mask=inside, other=0).to(tl.float32) + offset
    if PDL:
        gdc_wait()
    x = tl.load(X + row * width + at, mask=inside, other=0).to(tl.float32)
    if ADD:
        y = tl.load(Y + row * width + at, mask=inside, other=0)
        if AFTER:
            after = tl.load(After + at, mask=inside, other=0).to(tl.float32) + offset
            y = normed(y.to(tl.float32), after, width, eps).to(Y.dtype.element_ty)
        x = (x + y.to(tl.float32)).to(X.dtype.element_ty)
        tl.store(X + row * width + at, x, mask=inside)
        x = x.to(tl.float32)
    tl.store(Out + row * width + at, normed(x, weight, width, eps).to(Out.dtype.element_ty), mask=inside)


@triton.jit
def gated(
    Gate, Up, Out, width, gate_stride, up_stride, GELU: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr
):  # fmt: skip
    """out[row, c] = act(gate[row, c]) * up[row, c]; act is silu, or gelu by its tanh form. Grid (ceil(width / BLOCK),
    rows)."""
    row = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    gate = tl.load(Gate + row * gate_stride + at, mask=inside, other=0).to(tl.float32)
    up = tl.load(Up + row * up_stride + at, mask=inside, other=0).to(tl.float32)
    if GELU:
        # tanh(z) = 2 sigmoid(2 z) - 1.
        act = gate * tl.sigmoid(2 * 0.7978845608028654 * (gate + 0.044715 * gate * gate * gate))
    else:
        act = gate * tl.sigmoid(gate)
    tl.store(Out + row * width + at, (act * up).to(Out.dtype.element_ty), mask=inside)


@triton.jit
def pick(
    Logits, Values, Indices, Count, Position, Token, Found, vocabulary, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """The first of the largest logits to Token[0] and Found[position], and position + 1.

    Grid (ceil(vocabulary / BLOCK),), at most PROGRAMS of them; Values and Indices hold what each found, Count is zero
    before and after.
    """
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    program = tl.program_id(0)
    at = program * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(Logits + at, mask=at < vocabulary, other=float("-inf")).to(tl.float32)
    most = tl.max(value, 0)
    tl.store(Values + program, most)
    tl.store(Indices + program, tl.min(tl.where((value == most) & (at < vocabulary), at, vocabulary - 1), 0))
    tl.debug_barrier()
    programs = tl.num_programs(0)
    if tl.atomic_add(Count, 1, sem="acq_rel") == programs - 1:
        own = tl.arange(0, PROGRAMS)
        each = tl.load(Values + own, mask=own < programs, other=float("-inf"), cache_modifier=".cg")
        index = tl.load(Indices + own, mask=own < programs, other=0, cache_modifier=".cg")
        token = tl.min(tl.where((each == tl.max(each, 0)) & (own < programs), index, vocabulary - 1), 0)
        position = tl.load(Position)
        tl.store(Token, token.to(tl.int64))
        tl.store(Found + position, token.to(tl.int64))
        tl.store(Position, position + 1)
        tl.store(Count, 0)
