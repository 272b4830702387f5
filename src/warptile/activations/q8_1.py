"""Q8_1: 32 values in 36 bytes: fp16 d, fp16 s, int8 q."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.activations._groups import F32, flattened, grouped, nearest_away, to_half
from warptile.activations.q8_0 import inverse

Q8_1 = np.dtype([("d", "<f2"), ("s", "<f2"), ("q", "i1", (32,))])


def quantize_q8_1(x: NDArray[Any]) -> NDArray[Any]:
    """x[..., k] to Q8_1 blocks [..., k/32].

    d and q as Q8_0; s = d * sum(q), d before its rounding to fp16. Raises as `quantize_q8_0`.
    """
    values = grouped(x, 32, "Q8_1")
    d = np.abs(values).max(axis=-1) / np.float32(127)
    q = nearest_away(values * inverse(d)[..., None])
    out = np.zeros(d.shape, dtype=Q8_1)
    out["d"] = to_half(d, "Q8_1")
    out["s"] = to_half(d * q.sum(axis=-1, dtype=np.float32), "Q8_1")
    out["q"] = q
    return out


def dequantize_q8_1(blocks: NDArray[Any]) -> F32:
    """Q8_1 blocks [..., k/32] to f32[..., k]: d * q."""
    return flattened(blocks["q"].astype(np.float32) * blocks["d"].astype(np.float32)[..., None])
