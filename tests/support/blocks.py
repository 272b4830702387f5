"""File blocks to feed formats and layouts with."""

from __future__ import annotations

import numpy as np

from warptile.formats import Format
from warptile.layouts.fields import F32, U8


def random_blocks(format: Format, count: int, seed: int = 0) -> U8:
    """u8[count, block_bytes]: any byte pattern, also ones that no encoder writes."""
    return np.random.default_rng(seed).integers(0, 256, (count, format.block_bytes), dtype=np.uint8)


def bits(values: F32) -> np.ndarray:
    """float32 as u32 with every NaN alike: equality then means equal to the bit, the sign of zero included."""
    return np.where(np.isnan(values), np.uint32(0x7FC00000), np.ascontiguousarray(values).view(np.uint32))
