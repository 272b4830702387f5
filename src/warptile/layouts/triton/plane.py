"""One plane of the quad arrangement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class QuadPlane:
    """`per` elements of `bits` bits (8, 16 or 32) for each row and each `span` elements along k: [K/span][N][per]."""

    bits: int
    span: int
    per: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """Little-endian unsigned type of an element."""
        return np.dtype(f"<u{self.bits // 8}")
