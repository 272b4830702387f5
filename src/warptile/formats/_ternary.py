"""Quantizing to -1, 0, +1 times the block's largest magnitude."""

from __future__ import annotations

import numpy as np

from warptile.contracts.errors import UnusableInput
from warptile.formats._bits import raw
from warptile.layouts.fields import F32, U8


def ternary(values: F32, block: int, name: str, reciprocal: bool = False) -> tuple[U8, U8]:
    """f32[n, block] to (digits u8[n, block] in 0..2, fp16 d as u8[n, 2]).

    d = max|x| in float32; digit = round(x / d) + 1, halves away from zero, with d before its rounding to fp16. An
    all-zero block has d = 0 and digits 1. reciprocal: x * (1 / d) in place of x / d, as ggml's TQ1_0 and TQ2_0 have it.
    Raises UnusableInput for another shape, a value that is not finite, or one beyond fp16.
    """
    x = np.asarray(values, dtype=np.float32)
    if x.ndim != 2 or x.shape[1] != block:
        raise UnusableInput(f"{name} quantizes f32[n, {block}]; got {list(x.shape)}")
    if not np.isfinite(x).all():
        raise UnusableInput(f"{name} cannot hold values that are not finite")
    d = np.abs(x).max(axis=1, keepdims=True)
    if d.size and d.max() >= np.float32(65520):
        raise UnusableInput(f"{name} scales are fp16; got a value of magnitude {d.max():g}")
    safe = np.where(d == 0, np.float32(1), d)
    with np.errstate(over="ignore", invalid="ignore"):  # 1 / d overflows where d is subnormal
        ratio = x * (np.float32(1) / safe) if reciprocal else x / safe
    digits = np.uint8(1) + (ratio >= 0.5).astype(np.uint8) - (ratio <= -0.5).astype(np.uint8)
    return digits, raw(d.astype(np.float16).view("<u2"))
