"""Device code of the ceilings."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def read(W, Out, words, TILE: tl.constexpr, BUILD_ID: tl.constexpr):
    """Read W[words]; write only where the sum is one value that the data never has."""
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    total = tl.sum(tl.load(W + at, mask=at < words, other=0), 0)
    if total == 0x5A5A5A5B:
        tl.store(Out, BUILD_ID)


@triton.jit
def read_dependent(W, Out, words, TILE: tl.constexpr, BUILD_ID: tl.constexpr):
    """`read`, as a dependent launch: it starts while the launch ahead of it ends, and waits for that one last."""
    gdc_launch_dependents()
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    total = tl.sum(tl.load(W + at, mask=at < words, other=0), 0)
    gdc_wait()
    if total == 0x5A5A5A5B:
        tl.store(Out, BUILD_ID)


@triton.jit
def empty(Out, BUILD_ID: tl.constexpr):
    """Nothing."""
    tl.static_assert(BUILD_ID >= 0)
