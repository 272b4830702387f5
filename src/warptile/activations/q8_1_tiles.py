"""Q8_1 for tiles: 128 values in 144 bytes, a 16-byte head and int8 q. The head serves the weights' format.

D4: four scales in fp32, for formats without a minimum. DS4: four (scale, sum) in fp16, for formats with a minimum or
an offset. D2S6: two scales and six sums in fp16, for Q2_K. A sum is of the values before they were quantized.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.activations._groups import F32, flattened, grouped, nearest_away, to_half

Q8_1_D4 = np.dtype([("d", "<f4", (4,)), ("q", "i1", (128,))])
Q8_1_DS4 = np.dtype([("ds", "<f2", (4, 2)), ("q", "i1", (128,))])
Q8_1_D2S6 = np.dtype([("d", "<f2", (2,)), ("s", "<f2", (6,)), ("q", "i1", (128,))])


def _scaled(values: F32, group: int) -> tuple[F32, F32]:
    """f32[..., 128] to (q f32[..., 128], scale f32[..., 128/group]).

    inv = 127 / max|x| over the group, q = round(x * inv) with halves away from zero, scale = 1 / inv; an all-zero
    group has scale 0.
    """
    groups = values.reshape(*values.shape[:-1], -1, group)
    top = np.abs(groups).max(axis=-1)
    with np.errstate(divide="ignore", over="ignore"):
        inv = np.float32(127) / top
        scale = np.float32(1) / inv
    finite = np.isfinite(inv)
    inv = np.where(finite, inv, np.float32(0))
    q = nearest_away(groups * inv[..., None])
    return q.reshape(values.shape), np.where(finite, scale, np.float32(0))


def _sums(values: F32, group: int) -> F32:
    """Sums of each `group` values, f32[..., 128/group]."""
    groups = values.reshape(*values.shape[:-1], -1, group)
    sums: F32 = groups.sum(axis=-1, dtype=np.float32)
    return sums


def _spread(q: NDArray[Any], scale: NDArray[Any]) -> F32:
    """q[..., 128] times the scale of its group."""
    groups = q.astype(np.float32).reshape(*scale.shape, -1)
    scaled = groups * scale.astype(np.float32)[..., None]
    return flattened(scaled.reshape(*q.shape))


def quantize_q8_1_d4(x: NDArray[Any]) -> NDArray[Any]:
    """x[..., k] to D4 blocks [..., k/128]: per 32 values inv = 127 / max|x|, q = round(x * inv), scale = 1 / inv.

    Raises UnusableInput for a k that is not a multiple of 128 or values that are not finite.
    """
    values = grouped(x, 128, "Q8_1 D4")
    q, scale = _scaled(values, 32)
    out = np.zeros(values.shape[:-1], dtype=Q8_1_D4)
    out["d"], out["q"] = scale, q
    return out


def quantize_q8_1_ds4(x: NDArray[Any]) -> NDArray[Any]:
    """x[..., k] to DS4 blocks [..., k/128]: as D4 with the scale in fp16, and beside it the sum of the 32 values.

    Raises as D4, and where a scale or sum is beyond fp16.
    """
    values = grouped(x, 128, "Q8_1 DS4")
    q, scale = _scaled(values, 32)
    out = np.zeros(values.shape[:-1], dtype=Q8_1_DS4)
    out["ds"] = to_half(np.stack([scale, _sums(values, 32)], axis=-1), "Q8_1 DS4")
    out["q"] = q
    return out


def quantize_q8_1_d2s6(x: NDArray[Any]) -> NDArray[Any]:
    """x[..., k] to D2S6 blocks [..., k/128]: a scale each 64 values, sums of each 16 of the first 96.

    Raises as DS4.
    """
    values = grouped(x, 128, "Q8_1 D2S6")
    q, scale = _scaled(values, 64)
    out = np.zeros(values.shape[:-1], dtype=Q8_1_D2S6)
    out["d"] = to_half(scale, "Q8_1 D2S6")
    out["s"] = to_half(_sums(values, 16)[..., :6], "Q8_1 D2S6")
    out["q"] = q
    return out


def dequantize_q8_1_d4(blocks: NDArray[Any]) -> F32:
    """D4 blocks [..., k/128] to f32[..., k]."""
    return _spread(blocks["q"], blocks["d"])


def dequantize_q8_1_ds4(blocks: NDArray[Any]) -> F32:
    """DS4 blocks [..., k/128] to f32[..., k]."""
    return _spread(blocks["q"], blocks["ds"][..., 0])


def dequantize_q8_1_d2s6(blocks: NDArray[Any]) -> F32:
    """D2S6 blocks [..., k/128] to f32[..., k]."""
    return _spread(blocks["q"], blocks["d"])
