"""What the activation quantizers share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.contracts.errors import UnusableInput

F32 = NDArray[np.float32]


def grouped(x: NDArray[Any], block: int, name: str) -> F32:
    """x[..., k] as f32[..., k / block, block].

    Raises UnusableInput where k is not a positive multiple of the block or a value is not finite.
    """
    values = np.asarray(x, dtype=np.float32)
    k = values.shape[-1] if values.ndim else 0
    if k == 0 or k % block:
        raise UnusableInput(f"{name}: a row of K = {k} is not a whole number of blocks of {block}")
    if not np.isfinite(values).all():
        raise UnusableInput(f"{name} cannot hold values that are not finite")
    return values.reshape(*values.shape[:-1], k // block, block)


def nearest_away(x: F32) -> F32:
    """Nearest whole number, halves away from zero (C's roundf)."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= np.float32(0.5), whole + np.sign(x), whole)


def to_half(x: F32, name: str) -> NDArray[np.float16]:
    """float32 to fp16, to nearest even. Raises UnusableInput where a value is beyond fp16."""
    if x.size and np.abs(x).max() >= np.float32(65520):
        raise UnusableInput(f"{name} keeps scales and sums in fp16; one here is {np.abs(x).max():g}")
    return x.astype(np.float16)


def flattened(values: F32) -> F32:
    """f32[..., blocks, block] as f32[..., k]."""
    return values.reshape(*values.shape[:-2], -1)
