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
        return _as_bytes(np.take(_expansion(bits), data), n)
    lane, run = _widest(width)
    flat = np.ascontiguousarray(data).reshape(-1).view(lane)
    runs = np.empty((data.size // width, per, width // run.itemsize), dtype=run)
    for step in range(per):
        part = flat >> lane.type(bits * step)
        part &= _every_byte(lane, bits)
        runs[:, step] = part.view(run).reshape(len(runs), -1)
    return _as_bytes(runs, n)


def collapse(codes: U8, bits: int, width: int) -> U8:
    """Inverse of `expand`; bits of a code above `bits` are dropped."""
    n, per = len(codes), 8 // bits
    flat = np.ascontiguousarray(codes).reshape(-1)
    if width == 1:
        lane = np.dtype(f"<u{per}")
        lanes = flat.view(lane) & _every_byte(lane, bits)
        packed: U8 = lanes.astype(np.uint8)
        for step in range(1, per):
            packed |= (lanes >> lane.type((8 - bits) * step)).astype(np.uint8)
        return packed.reshape(n, -1)
    lane, run = _widest(width)
    runs = flat.view(run).reshape(-1, per, width // run.itemsize)
    out = np.zeros(flat.size // per // lane.itemsize, dtype=lane)
    for step in range(per):
        part = np.ascontiguousarray(runs[:, step]).reshape(-1).view(lane) & _every_byte(lane, bits)
        part <<= lane.type(bits * step)
        out |= part
    return _as_bytes(out, n)


def _as_bytes(array: NDArray[Any], n: int) -> U8:
    """A contiguous array's bytes as u8[n, bytes / n]."""
    data: U8 = array.reshape(-1).view(np.uint8)
    return data.reshape(n, -1)


def _widest(width: int) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Types to compute on, and to copy runs of `width` bytes (a multiple of 4) with.

    Copied as single wide elements because numpy is slow on short inner axes.
    """
    if width % 16 == 0:
        return np.dtype("<u8"), np.dtype(np.complex128)
    word = np.dtype("<u8" if width % 8 == 0 else "<u4")
    return word, word


def _every_byte(lane: np.dtype[Any], bits: int) -> Any:
    """The low `bits` bits of every byte of a lane."""
    return lane.type(((1 << bits) - 1) * (256**lane.itemsize // 255))


def halves(data: U8) -> NDArray[Any]:
    """u8[n, 2 * c] bytes to u16[n, c], little-endian (fp16 bits)."""
    return np.ascontiguousarray(data).view("<u2")


def raw(words: NDArray[Any]) -> U8:
    """Inverse of `halves`: u16[n, c] to u8[n, 2 * c]."""
    return np.ascontiguousarray(words, dtype="<u2").view(np.uint8)
