"""One quantized weight of a model, as its file holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from warptile import formats, layouts
from warptile.contracts.errors import UnusableInput
from warptile.formats import Format
from warptile.layouts.fields import F32, U8

_TILE_ELEMENTS = 1 << 18


@dataclass(frozen=True)
class QuantTensor:
    """A weight w[n, k] in file blocks.

    blocks: u8[n, row bytes], possibly memory-mapped. shape: (n, k); the experts of a 3-D tensor are rows one after
    another, (experts * n, k).
    """

    format: Format
    blocks: U8 = field(repr=False)
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        n, k = self.shape
        object.__setattr__(self, "blocks", layouts.checked_rows(self.format, self.blocks, n, k))

    @classmethod
    def from_blocks(cls, format: Format, blocks: U8, shape: Sequence[int]) -> QuantTensor:
        """A tensor from raw blocks; axes before the last one of `shape` are rows.

        Raises UnusableInput where k is not a multiple of the block or the bytes do not make up `shape`.
        """
        if len(shape) < 2:
            raise UnusableInput(f"a weight has rows and columns; got shape {list(shape)}")
        return cls(format, np.asarray(blocks), (int(np.prod(shape[:-1])), int(shape[-1])))

    @classmethod
    def from_gguf(cls, path: str | Path, name: str) -> QuantTensor:
        """The tensor `name` of a GGUF file, memory-mapped.

        Raises UnusableInput for an unusable file, an unknown tensor, or a type without a format here.
        """
        from warptile.gguf import open_gguf

        file = open_gguf(path)
        info = file.tensor(name)
        k, *rows = info.shape
        return cls.from_blocks(formats.by_gguf_id(info.type_id), file.blocks(name), (*reversed(rows or [1]), k))

    def dequantize(self) -> F32:
        """f32[n, k], equal to the format's reference decode to the bit."""
        n, k = self.shape
        out = np.empty((n, k), dtype=np.float32)
        step = max(1, _TILE_ELEMENTS // k)
        for row in range(0, n, step):
            tile = self.blocks[row : row + step]
            out[row : row + step] = self.format.decode(tile.reshape(-1, self.format.block_bytes)).reshape(len(tile), k)
        return out

    def pack(self, max_bytes: int | None = None, arrangement: str = "rows") -> layouts.PackedWeights:
        """Planes as a device sees them, in slices of at most max_bytes; arrangement: the device's, see `layouts.pack`.

        Raises UnusableInput where one row exceeds that.
        """
        return layouts.pack(self.format, self.blocks, *self.shape, max_bytes, arrangement)
