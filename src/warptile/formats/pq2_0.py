"""PQ2_0: 128 elements in 34 bytes. fp16 d, 2-bit codes. value = d * (q - 1)."""

from __future__ import annotations

from warptile.formats._two_bits import two_bit_format

FORMAT = two_bit_format("PQ2_0", 142, 128)
