"""Packing into the quad arrangement on the host: exact, invertible; the reference for packing on the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from warptile.layouts.fields import U8
from warptile.layouts.triton.arrangement import ROW_GRANULE, Arrangement, arrangement

if TYPE_CHECKING:
    from warptile.formats import Format

_TILE_ELEMENTS = 1 << 18


def plane_views(arranged: Arrangement, words: NDArray[np.uint32], rows: int) -> list[NDArray[Any]]:
    """Each plane of a slice as an array [K/span, rows, per] over `words`."""
    starts, _ = arranged.offsets(rows)
    views = []
    for start, plane in zip(starts, arranged.planes, strict=True):
        shape = (arranged.k // plane.span, -(-rows // ROW_GRANULE) * ROW_GRANULE, plane.per)
        part = words[start:].view(plane.dtype)[: int(np.prod(shape))]
        views.append(part.reshape(shape)[:, :rows])
    return views


def pack_rows(
    format: Format, rows_of: U8, k: int, repeated: int | None = None
) -> tuple[NDArray[np.uint32], tuple[int, ...]]:
    """File rows u8[rows, row bytes], repeated one after another to `repeated` rows, to one slice's words, and where its
    planes start.
    """
    arranged = arrangement(format.layout, k)
    total_rows = len(rows_of) if repeated is None else repeated
    rows = min(len(rows_of), total_rows)
    starts, total = arranged.offsets(total_rows)
    words = np.zeros(total, dtype="<u4")
    views = plane_views(arranged, words, total_rows)
    for tile in _tiles(rows, k):
        fields = format.split(rows_of[tile].reshape(-1, format.block_bytes))
        for view, elements in zip(views, arranged.to_planes(fields), strict=True):
            view[:, tile] = elements.swapaxes(0, 1)
    while rows < total_rows:
        more = min(rows, total_rows - rows)
        for view in views:
            view[:, rows : rows + more] = view[:, :more]
        rows += more
    return words, starts


def unpack_rows(format: Format, words: NDArray[np.uint32], rows: int, k: int) -> U8:
    """Inverse of `pack_rows`: u8[rows, row bytes]."""
    arranged = arrangement(format.layout, k)
    views = plane_views(arranged, words, rows)
    out = np.empty((rows, format.row_bytes(k)), dtype=np.uint8)
    for tile in _tiles(rows, k):
        elements = [np.ascontiguousarray(view[:, tile].swapaxes(0, 1)) for view in views]
        out[tile] = format.join(arranged.from_planes(elements)).reshape(tile.stop - tile.start, -1)
    return out


def _tiles(rows: int, k: int) -> Iterator[slice]:
    step = max(1, _TILE_ELEMENTS // k)
    return (slice(start, min(rows, start + step)) for start in range(0, rows, step))
