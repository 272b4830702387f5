"""A layout's planes as `layouts.triton.lane_decode` takes them, and the boxes that copies bring them in."""

from __future__ import annotations

from warptile.layouts.triton import Arrangement
from warptile.layouts.triton.plane import QuadPlane

Plane = tuple[int, int, int, bool]
"""Bits of an element, elements a row, elements along k that they span, whether each quad lane has its own."""
WORD_TYPES = {8: "u8", 16: "u16", 32: "i32"}
SWIZZLED_ROW_BYTES = 128
MOST_BOX = 256


def lane_planes(arranged: Arrangement) -> tuple[Plane, ...]:
    """The planes but the row units': a scale plane's elements joined to words of up to 32 bits."""
    found: list[Plane] = []
    for at, plane in enumerate(arranged.planes[:-1]):
        if at < len(arranged.code_planes) and plane.per > 1:
            found.append((plane.bits, plane.per, plane.span, True))
        else:
            bits = min(32, plane.per * plane.bits)
            found.append((bits, plane.per * plane.bits // bits, plane.span, False))
    return tuple(found)


def row_bytes(plane: Plane | QuadPlane) -> int:
    """Bytes that a row has in a plane's span."""
    bits, per = plane[:2] if isinstance(plane, tuple) else (plane.bits, plane.per)
    return bits * per // 8


def box(plane: Plane, rows: int) -> tuple[str, tuple[int, ...], int]:
    """(element type, shape, bytes of swizzle) of one copy of `rows` rows of a plane.

    Planes whose 64 rows fill eight rows of 128 bytes are copied swizzled, others flat, 256 elements at most at a time.
    """
    bits, per, _, _ = plane
    if row_bytes(plane) * 64 >= 8 * SWIZZLED_ROW_BYTES:
        across = 8 * SWIZZLED_ROW_BYTES // bits
        return WORD_TYPES[bits], (rows * per // across, across), SWIZZLED_ROW_BYTES
    return WORD_TYPES[bits], (min(rows * per, MOST_BOX),), 0
