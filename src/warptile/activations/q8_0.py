"""Q8_0: 32 values in 34 bytes: fp16 d, int8 q."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.activations._groups import F32, flattened, grouped, nearest_away, to_half

Q8_0 = np.dtype([("d", "<f2"), ("q", "i1", (32,))])


def quantize_q8_0(x: NDArray[Any]) -> NDArray[Any]:
    """x[..., k] to Q8_0 blocks [..., k/32] (a structured array; its bytes are ggml's).

    d = max|x| / 127, q = round(x / d) with halves away from zero and d before its rounding to fp16; computed as
    x * (1 / d). Raises UnusableInput for a bad k, values that are not finite, or beyond fp16.
    """
    values = grouped(x, 32, "Q8_0")
    d = np.abs(values).max(axis=-1) / np.float32(127)
    out = np.zeros(d.shape, dtype=Q8_0)
    out["d"] = to_half(d, "Q8_0")
    out["q"] = nearest_away(values * inverse(d)[..., None])
    return out


def dequantize_q8_0(blocks: NDArray[Any]) -> F32:
    """Q8_0 blocks [..., k/32] to f32[..., k]: d * q."""
    return flattened(blocks["q"].astype(np.float32) * blocks["d"].astype(np.float32)[..., None])


def inverse(d: F32) -> F32:
    """1 / d, and 0 where d is 0 or so small that 1 / d overflows (its q are all 0 then, as d rounds to 0 in fp16)."""
    with np.errstate(divide="ignore", over="ignore"):
        inverted = np.float32(1) / d
    return np.where(np.isfinite(inverted), inverted, np.float32(0))
