"""What a format is: the meaning of a block's bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from warptile.contracts.errors import UnusableInput
from warptile.layouts.fields import F32, U8, Fields
from warptile.layouts.layout import Layout


@dataclass(frozen=True)
class Format:
    """A block format of GGUF files.

    block_size: elements a block; block_bytes: its bytes. split: u8[n, block_bytes] to the layout's fields;
    join: its inverse, exact for every byte pattern. encode: f32[n, block_size] to u8[n, block_bytes], None
    where no encoder is defined here. permutes: whether splitting only moves and flips bits; grid formats look their
    codes up.
    """

    name: str
    gguf_id: int
    block_size: int
    block_bytes: int
    layout: Layout
    split: Callable[[U8], Fields] = field(repr=False)
    join: Callable[[Fields], U8] = field(repr=False)
    encode: Callable[[F32], U8] | None = field(default=None, repr=False)
    permutes: bool = True

    def decode(self, blocks: U8) -> F32:
        """u8[n, block_bytes] to f32[n, block_size], equal to the bit to the format's reference decode.

        Raises UnusableInput for any other shape.
        """
        if blocks.dtype != np.uint8 or blocks.ndim != 2 or blocks.shape[1] != self.block_bytes:
            raise UnusableInput(
                f"{self.name} blocks are u8[n, {self.block_bytes}]; got {blocks.dtype}{list(blocks.shape)}"
            )
        return self.layout.values(self.split(blocks))

    def row_bytes(self, k: int) -> int:
        """Bytes of a row of k elements. Raises UnusableInput where k is not a positive multiple of the block."""
        if k <= 0 or k % self.block_size:
            raise UnusableInput(f"{self.name}: a row of K = {k} is not a whole number of blocks of {self.block_size}")
        return k // self.block_size * self.block_bytes

    @property
    def bits_per_weight(self) -> float:
        """8 * block_bytes / block_size."""
        return 8 * self.block_bytes / self.block_size
