"""Blocks whose weights are small whole numbers, so that a right kernel's output equals the reference to the bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warptile import formats

# Where a block's fp16 factors lie, in 16-bit words; all become 1.
FACTORS = {"Q4_0": (0,), "Q4_1": (0, 1), "Q5_0": (0,), "Q8_0": (0,), "Q4_K": (0, 1), "Q6_K": (104,)}


def integer_blocks(name: str, n: int, k: int, seed: int) -> NDArray[np.uint8]:
    """Random blocks of w[n, k] with every fp16 factor 1 (Q6_K's 8-bit scales -4..3: its weights stay below 2048)."""
    found = formats.by_name(name)
    rng = np.random.default_rng(seed)
    count = n * k // found.block_size
    blocks = rng.integers(0, 256, (count, found.block_bytes), dtype=np.uint8)
    blocks.view(np.uint16)[:, FACTORS[name]] = np.float16(1).view(np.uint16)
    if name == "Q6_K":
        blocks[:, 192:208] = rng.integers(-4, 4, (count, 16), dtype=np.int8).view(np.uint8)
    return blocks


def reference(name: str, blocks: NDArray[np.uint8], n: int, k: int, x: NDArray[np.float32]) -> NDArray[np.float64]:
    """sum_k x[m, k] * w[n, k] in float64 from the format's own decode."""
    w = formats.by_name(name).decode(blocks).reshape(n, k).astype(np.float64)
    return np.asarray(x.astype(np.float64) @ w.T)
