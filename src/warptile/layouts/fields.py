"""What formats hand to layouts: a block's integer codes and its scale arrays, nothing of the file's byte order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
F32 = NDArray[np.float32]


@dataclass(frozen=True)
class Fields:
    """The content of n blocks.

    codes: u8[n, block] integer codes in element order; for a trit plane the file's base-3 bytes u8[n, bytes].
    scales: arrays [n, per block] by the names that the layout's scale kind lists; fp16 values as their u16 bits.
    """

    codes: U8
    scales: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Plane:
    """One plane of a packed slice: `per_block` elements of `bits` bits (8, 16 or 32) a block and row.

    Element e of row n (e counts through the row's blocks) is at index e * N + n of the plane.
    """

    bits: int
    per_block: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """Little-endian unsigned type of an element."""
        return np.dtype(f"<u{self.bits // 8}")

    def words(self, rows: int, blocks: int) -> int:
        """32-bit words of the plane for `rows` rows of `blocks` blocks, rounded up to a multiple of four."""
        bits = rows * blocks * self.per_block * self.bits
        return -(-bits // 128) * 4


def half_to_float(bits: NDArray[Any]) -> F32:
    """fp16 values, given as u16 bits, as float32 (exact)."""
    values: F32 = np.ascontiguousarray(bits, dtype="<u2").view("<f2").astype(np.float32)
    return values
