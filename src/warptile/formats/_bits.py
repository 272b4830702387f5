"""Small codes in bytes, as files lay them: `width` neighbouring elements share a bit position."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.layouts.fields import U8


@cache
def _expansion(bits: int) -> NDArray[Any]:
    """Table of 256 unsigned words: byte -> its 8/bits codes, one a byte, lowest first."""
    per = 8 // bits
    codes = np.arange(256)[:, None] >> (bits * np.arange(per)) & ((1 << bits) - 1)
    return codes.astype(np.uint8).view(f"<u{per}").reshape(256)


def expand(data: U8, bits: int, width: int) -> U8:
    """u8[n, B] bytes to u8[n, B * 8/bits] codes of 1, 2 or 4 bits.

    Bytes come in runs of `width`; element (run, step, i) is bits [bits*step, bits*(step+1)) of byte (run, i).
    """
    n, per = len(data), 8 // bits
    if width == 1:
        return np.take(_expansion(bits), data).view(np.uint8).reshape(n, -1)
    runs = data.reshape(n, -1, width)
    codes = np.empty((n, runs.shape[1], per, width), dtype=np.uint8)
    mask = np.uint8((1 << bits) - 1)
    for step in range(per):
        part = codes[:, :, step]
        np.right_shift(runs, np.uint8(bits * step), out=part)
        if step < per - 1:
            part &= mask
    return codes.reshape(n, -1)


def collapse(codes: U8, bits: int, width: int) -> U8:
    """Inverse of `expand`; bits of a code above `bits` are dropped."""
    n, per = len(codes), 8 // bits
    runs = codes.reshape(n, -1, per, width) & np.uint8((1 << bits) - 1)
    out = runs[:, :, 0].copy()
    for step in range(1, per):
        out |= runs[:, :, step] << np.uint8(bits * step)
    return out.reshape(n, -1)


def halves(data: U8) -> NDArray[Any]:
    """u8[n, 2 * c] bytes to u16[n, c], little-endian (fp16 bits)."""
    return np.ascontiguousarray(data).view("<u2")


def raw(words: NDArray[Any]) -> U8:
    """Inverse of `halves`: u16[n, c] to u8[n, 2 * c]."""
    return np.ascontiguousarray(words, dtype="<u2").view(np.uint8)
