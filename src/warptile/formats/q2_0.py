"""Q2_0: 64 elements in 18 bytes. fp16 d, 2-bit codes. value = d * (q - 1)."""

from __future__ import annotations

from warptile.formats._two_bits import two_bit_format

FORMAT = two_bit_format("Q2_0", 42, 64)
