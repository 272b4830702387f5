"""Code planes of the quad arrangement: bit planes and base-3 bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.layouts.fields import U8
from warptile.layouts.triton.plane import QuadPlane
from warptile.layouts.trits import TritPlane

LANES = 4


def bit_plane_shapes(widths: Sequence[int], chunks: int) -> tuple[QuadPlane, ...]:
    """One plane a width b: a row's and quad lane's 8 * chunks codes in words of at most 32 bits, order [lane][word].

    A word of U bits holds U / (2 b) slots: slot s has e = 0 at bit b s and e = 1 at bit U / 2 + b s.
    """
    planes = []
    for b in widths:
        bits = min(32, 8 * b * chunks)
        planes.append(QuadPlane(bits, 32 * chunks, LANES * 8 * b * chunks // bits))
    return tuple(planes)


def _shifts(plane: QuadPlane, b: int) -> NDArray[Any]:
    """Bit positions [slots a word, 2] of a plane of b bits."""
    half = plane.bits // 2
    return (np.arange(half // b)[:, None] * b + np.arange(2)[None, :] * half).astype(plane.dtype)


def bit_planes(planes: Sequence[QuadPlane], widths: Sequence[int], codes: U8, chunks: int) -> list[NDArray[Any]]:
    """u8[rows, k] codes to words [rows, k/step, per], one array a plane."""
    rows = len(codes)
    slots = codes.reshape(rows, -1, 4 * chunks, LANES, 2).swapaxes(2, 3)
    out: list[NDArray[Any]] = []
    low = 0
    for plane, b in zip(planes, widths, strict=True):
        shifts = _shifts(plane, b)
        part = (slots >> np.uint8(low) & np.uint8((1 << b) - 1)).astype(plane.dtype)
        words = part.reshape(rows, part.shape[1], LANES, -1, *shifts.shape)
        out.append(np.bitwise_or.reduce(words << shifts, axis=(4, 5)).reshape(rows, part.shape[1], -1))
        low += b
    return out


def bit_planes_back(
    planes: Sequence[QuadPlane], widths: Sequence[int], words: Sequence[NDArray[Any]], chunks: int
) -> U8:
    """Inverse of `bit_planes`: u8[rows, k]."""
    rows, steps = words[0].shape[:2]
    codes = np.zeros((rows, steps, LANES, 4 * chunks, 2), dtype=np.uint8)
    low = 0
    for plane, b, array in zip(planes, widths, words, strict=True):
        shifts = _shifts(plane, b)
        part = array.reshape(rows, steps, LANES, -1, 1, 1) >> shifts & plane.dtype.type((1 << b) - 1)
        codes |= part.reshape(codes.shape).astype(np.uint8) << np.uint8(low)
        low += b
    return codes.swapaxes(2, 3).reshape(rows, -1)


def trit_plane_shapes(trits: TritPlane) -> tuple[QuadPlane, ...]:
    """One plane a stage, each [lane][...]: u32 words of two slots' bytes (stages of 16 or 32), u16 (8), or the row's
    last four bytes as one u32 (2 or 4 bytes, the rest of the block after them)."""
    planes = []
    for count, _ in trits.stages:
        if count >= 16:
            planes.append(QuadPlane(32, trits.block, LANES * count // 16))
        elif count == 8:
            planes.append(QuadPlane(16, trits.block, LANES))
        else:
            planes.append(QuadPlane(32, trits.block, 1))
    return tuple(planes)


def trit_planes(trits: TritPlane, data: U8) -> list[NDArray[Any]]:
    """u8[rows, blocks, bytes] to elements [rows, blocks, per], one array a stage.

    Byte i = 8 p + 2 c + e of a stage belongs to lane c; a word holds p even, odd of e = 0, then of e = 1.
    """
    rows, blocks, _ = data.shape
    out: list[NDArray[Any]] = []
    at = 0
    for count, _ in trits.stages:
        if count >= 8:
            stage = data[:, :, at : at + count].reshape(rows, blocks, -1, min(2, count // 8), LANES, 2)
            ordered = np.ascontiguousarray(stage.transpose(0, 1, 4, 2, 5, 3)).reshape(rows, blocks, -1)
            out.append(ordered.view("<u4" if count >= 16 else "<u2"))
        else:
            out.append(np.ascontiguousarray(data[:, :, -4:]).view("<u4"))
        at += count
    return out


def trit_planes_back(trits: TritPlane, planes: Sequence[NDArray[Any]]) -> U8:
    """Inverse of `trit_planes`."""
    rows, blocks = planes[0].shape[:2]
    data = np.empty((rows, blocks, trits.nbytes), dtype=np.uint8)
    at = 0
    for (count, _), plane in zip(trits.stages, planes, strict=True):
        raw = np.ascontiguousarray(plane).view(np.uint8)
        if count >= 8:
            parts = raw.reshape(rows, blocks, LANES, -1, 2, min(2, count // 8)).transpose(0, 1, 3, 5, 2, 4)
            data[:, :, at : at + count] = parts.reshape(rows, blocks, count)
        else:
            data[:, :, -4:] = raw
        at += count
    return data
