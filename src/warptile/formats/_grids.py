"""Grids: rows of 4 or 8 magnitudes that one index of a file stands for, unfolded to a code an element, and folded.

The tables are the `gguf` package's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.layouts.fields import U8


@dataclass(frozen=True)
class Grid:
    """codes: u8[entries, length], magnitudes as their number in the grid's own list of them. index: u16, the entry of a
    row of codes read as one number of `bits` bits a code, lowest first."""

    codes: U8
    index: NDArray[np.uint16]
    bits: int

    def unfold(self, entries: NDArray[Any]) -> U8:
        """[n, c] indices to u8[n, c, length] codes."""
        codes: U8 = self.codes[entries]
        return codes

    def fold(self, codes: U8) -> NDArray[np.uint16]:
        """Inverse of `unfold`, for codes that are entries of the grid."""
        shifts = (np.arange(codes.shape[-1]) * self.bits).astype(np.uint16)
        return self.index[np.bitwise_or.reduce(codes.astype(np.uint16) << shifts, axis=-1)]


@cache
def grid(name: str) -> Grid:
    """The grid of a format such as "IQ2_XXS"."""
    from gguf import quants

    table: Any = getattr(quants, name)
    table.init_grid()
    levels = np.array(table.grid_map)
    codes = np.searchsorted(levels, table.grid.reshape(table.grid_shape)).astype(np.uint8)
    bits = (len(levels) - 1).bit_length()
    shifts = (np.arange(codes.shape[1]) * bits).astype(np.uint16)
    index = np.zeros(1 << bits * codes.shape[1], dtype=np.uint16)
    index[np.bitwise_or.reduce(codes.astype(np.uint16) << shifts, axis=1)] = np.arange(len(codes))
    return Grid(codes, index, bits)


def bits_of(data: U8) -> U8:
    """u8[n, c] bytes to u8[n, c, 8] bits, lowest first."""
    return np.unpackbits(np.ascontiguousarray(data)[..., None], axis=-1, bitorder="little")


def bytes_of(bits: U8) -> U8:
    """Inverse of `bits_of`; without the eighth bit where there are seven."""
    return np.packbits(bits, axis=-1, bitorder="little")[..., 0]


@cache
def parity_signs() -> U8:
    """u8[128, 8]: the bits of a 7-bit number, then the bit that makes their number even."""
    numbers = np.arange(128, dtype=np.uint8)[:, None]
    bits = bits_of(numbers)[:, 0]
    bits[:, 7] = bits.sum(axis=1) & 1
    return bits


def fields_of(words: NDArray[Any], shifts: tuple[int, ...], mask: int) -> NDArray[Any]:
    """[n, c] words to [n, c * len(shifts)] numbers (word >> shift) & mask, the shift running fastest."""
    kind = words.dtype.type
    cut = words[..., None] >> np.array(shifts, dtype=words.dtype) & kind(mask)
    return np.asarray(cut).reshape(len(words), -1)


def join_fields(numbers: NDArray[Any], shifts: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Inverse of `fields_of`: [n, c * len(shifts)] numbers to [n, c] words."""
    parts = numbers.reshape(len(numbers), -1, len(shifts)).astype(dtype) << np.array(shifts, dtype=dtype)
    return np.asarray(np.bitwise_or.reduce(parts, axis=-1), dtype=dtype)


def as_bytes(words: NDArray[Any]) -> U8:
    """Little-endian words [n, c] as bytes."""
    return np.ascontiguousarray(words).view(np.uint8).reshape(len(words), -1)
