"""Q8_K: 256 values in 292 bytes: fp32 d, int8 q, int16 sums of q over each 16."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.activations._groups import F32, flattened, grouped

Q8_K = np.dtype([("d", "<f4"), ("q", "i1", (256,)), ("sums", "<i2", (16,))])


def quantize_q8_k(x: NDArray[Any]) -> NDArray[Any]:
    """x[..., k] to Q8_K blocks [..., k/256].

    iscale = -127 / max, max the signed value of (the first) largest magnitude; q = min(127, round(iscale * x)), halves
    to even; d = 1 / iscale. An all-zero block has d = 0. Raises UnusableInput for a k that is not a multiple of 256
    or values that are not finite.
    """
    values = grouped(x, 256, "Q8_K")
    at = np.abs(values).argmax(axis=-1)[..., None]
    top = np.take_along_axis(values, at, axis=-1)
    with np.errstate(divide="ignore", over="ignore"):
        iscale = np.float32(-127) / top
        d = np.float32(1) / iscale
    finite = np.isfinite(iscale)
    iscale = np.where(finite, iscale, np.float32(0))
    q = np.minimum(np.rint(values * iscale), np.float32(127))
    out = np.zeros(values.shape[:-1], dtype=Q8_K)
    out["d"] = np.where(finite, d, np.float32(0))[..., 0]
    out["q"] = q
    out["sums"] = q.reshape(*q.shape[:-1], 16, 16).sum(axis=-1)
    return out


def dequantize_q8_k(blocks: NDArray[Any]) -> F32:
    """Q8_K blocks [..., k/256] to f32[..., k]: d * q."""
    return flattened(blocks["q"].astype(np.float32) * blocks["d"][..., None])
