"""Packing: file blocks to planes and back, in row tiles that stay in cache, slice by slice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import Buffer, DeviceWeights, Runtime, UnusableInput, WeightSlice
from warptile.layouts.fields import U8, Plane
from warptile.layouts.layout import Layout
from warptile.layouts.triton import arrangement as quad_arrangement
from warptile.layouts.triton import pack_rows, unpack_rows

if TYPE_CHECKING:
    from warptile.formats import Format

_TILE_ELEMENTS = 1 << 18
_ROW_STEP = 64


@dataclass(frozen=True)
class PackedSlice:
    """Rows [row0, row0 + rows) of a packed weight: u32 words, and where each plane starts in them, in words.

    expert0, experts, stride: of a grouped weight, as in `contracts.WeightSlice`.
    """

    row0: int
    rows: int
    words: NDArray[np.uint32]
    planes: tuple[int, ...]
    expert0: int = 0
    experts: int = 1
    stride: int = 0


ARRANGEMENTS = ("rows", "quads", "file")


@dataclass(frozen=True)
class PackedWeights:
    """A weight w[n, k] in its format's layout, in one slice or several; arrangement: see `pack`."""

    format: Format
    n: int
    k: int
    slices: tuple[PackedSlice, ...]
    arrangement: str = "rows"
    experts: int = 1

    @property
    def layout(self) -> Layout:
        """The format's layout."""
        return self.format.layout

    @property
    def nbytes(self) -> int:
        """Bytes of all slices together."""
        return sum(s.words.nbytes for s in self.slices)


def pack(
    format: Format, blocks: U8, n: int, k: int, max_bytes: int | None = None, arrangement: str = "rows"
) -> PackedWeights:
    """Pack w[n, k]'s file blocks (u8, n * k / block_size * block_bytes bytes in row order).

    max_bytes: most bytes a slice may have; rows are cut into slices to fit. arrangement: how words lie, a device's
    `Limits.arrangement`: "rows" (rows run fastest; see docs/architecture.md), "quads" (`layouts.triton`), or "file"
    (the file's blocks row by row, padded to whole words). Beyond the result, only a tile of a few megabytes is held.
    Raises UnusableInput where k is not a multiple of the block, the bytes do not match (n, k), one row alone exceeds
    max_bytes, or the arrangement is unknown.
    """
    slices = tuple(pack_slices(format, blocks, n, k, max_bytes, arrangement))
    return PackedWeights(format, n, k, slices, arrangement)


def pack_slices(
    format: Format, blocks: U8, n: int, k: int, max_bytes: int | None = None, arrangement: str = "rows"
) -> Iterator[PackedSlice]:
    """The slices of `pack` one at a time, for a caller that hands each to a device before the next is made."""
    rows_of = checked_rows(format, blocks, n, k)
    step = rows_per_slice(format, n, k, max_bytes, arrangement)
    for row0 in range(0, n, step):
        part = rows_of[row0 : row0 + step]
        if arrangement == "quads":
            words, starts = pack_rows(format, part, k)
            yield PackedSlice(row0, len(part), words, starts)
        elif arrangement == "file":
            yield PackedSlice(row0, len(part), _file_words(part), (0,))
        else:
            yield _pack_rows(format, part, row0, k)


def pack_repeated(
    format: Format, blocks: U8, n: int, k: int, max_bytes: int | None = None, arrangement: str = "rows"
) -> PackedWeights:
    """`pack` of the rows u8[any number, row bytes] one after another, again and again, to n rows; in quads each row is
    packed once. Raises UnusableInput as `pack`.
    """
    row_bytes = format.row_bytes(k)
    if arrangement != "quads":
        return pack(format, np.resize(blocks, (n, row_bytes)), n, k, max_bytes, arrangement)
    rows_of = checked_rows(format, blocks, len(blocks), k)
    slices = []
    step = rows_per_slice(format, n, k, max_bytes, arrangement)
    for row0 in range(0, n, step):
        rows = min(step, n - row0)
        words, starts = pack_rows(format, np.roll(rows_of, -row0, axis=0), k, rows)
        slices.append(PackedSlice(row0, rows, words, starts))
    return PackedWeights(format, n, k, tuple(slices), arrangement)


def slice_bytes(format: Format, rows: int, k: int, arrangement: str = "rows") -> int:
    """Bytes of a packed slice of `rows` rows. Raises UnusableInput for an unknown arrangement."""
    if arrangement == "quads":
        return quad_arrangement(format.layout, k).offsets(rows)[1] * 4
    if arrangement == "file":
        return -(-rows * format.row_bytes(k) // 4) * 4
    if arrangement != "rows":
        raise UnusableInput(f"no arrangement {arrangement!r} of packed weights; there are {', '.join(ARRANGEMENTS)}")
    return format.layout.offsets(rows, k)[1] * 4


def _file_words(rows_of: U8) -> NDArray[np.uint32]:
    words = np.zeros(-(-rows_of.size // 4), "<u4")
    words.view(np.uint8)[: rows_of.size] = rows_of.reshape(-1)
    return words


def checked_rows(format: Format, blocks: U8, n: int, k: int) -> U8:
    """`blocks` as u8[n, row bytes]. Raises UnusableInput where they do not make up w[n, k]."""
    if n <= 0:
        raise UnusableInput(f"{format.name} weight of n = {n} rows: nothing to pack")
    row_bytes = format.row_bytes(k)
    if blocks.dtype != np.uint8 or blocks.size != n * row_bytes:
        raise UnusableInput(
            f"{format.name} weight n = {n}, k = {k} is {n * row_bytes} bytes; got {blocks.size} of {blocks.dtype}"
        )
    return blocks.reshape(n, row_bytes)


def rows_per_slice(format: Format, n: int, k: int, max_bytes: int | None, arrangement: str = "rows") -> int:
    """Most rows whose slice fits max_bytes, a multiple of 64 where 64 fit. Raises UnusableInput where none fits."""
    whole = slice_bytes(format, n, k, arrangement)
    if max_bytes is None or whole <= max_bytes:
        return n
    low, high = 0, n
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if slice_bytes(format, middle, k, arrangement) <= max_bytes else (low, middle)
    if low == 0:
        raise UnusableInput(f"one packed row of k = {k} exceeds the device's buffer limit of {max_bytes} bytes")
    return low - low % _ROW_STEP if low >= _ROW_STEP else low


def _views(layout: Layout, words: NDArray[np.uint32], rows: int, k: int) -> list[NDArray[Any]]:
    """Each plane of a slice as an array [elements a row, rows] over `words`."""
    starts, _ = layout.offsets(rows, k)
    blocks = layout.blocks(k)

    def view(start: int, plane: Plane) -> NDArray[Any]:
        count = plane.per_block * blocks
        part = words[start : start + plane.words(rows, blocks)].view(plane.dtype)
        return part[: count * rows].reshape(count, rows)

    return [view(start, plane) for start, plane in zip(starts, layout.planes, strict=True)]


def _row_tiles(rows: int, k: int) -> Iterator[slice]:
    """Row ranges of about `_TILE_ELEMENTS` elements, whole cache lines of rows where possible."""
    step = max(1, _TILE_ELEMENTS // k)
    step = step - step % 16 if step >= 16 else 16
    return (slice(start, min(rows, start + step)) for start in range(0, rows, step))


def _pack_rows(format: Format, rows_of: U8, row0: int, k: int) -> PackedSlice:
    layout = format.layout
    rows = len(rows_of)
    starts, total = layout.offsets(rows, k)
    words = np.zeros(total, dtype="<u4")
    views = _views(layout, words, rows, k)
    for tile in _row_tiles(rows, k):
        fields = format.split(rows_of[tile].reshape(-1, format.block_bytes))
        count = tile.stop - tile.start
        for view, elements in zip(views, layout.to_planes(fields), strict=True):
            view[:, tile] = elements.reshape(count, -1).T
    return PackedSlice(row0, rows, words, starts)


def unpack(packed: PackedWeights) -> U8:
    """The file's blocks, u8[n, row bytes]: the inverse of `pack`, to the byte."""
    format = packed.format
    out = np.empty((packed.n, format.row_bytes(packed.k)), dtype=np.uint8)
    if packed.arrangement == "file":
        for piece in packed.slices:
            part = out[piece.row0 : piece.row0 + piece.rows]
            part[:] = piece.words.view(np.uint8)[: part.size].reshape(part.shape)
        return out
    if packed.arrangement == "quads":
        for piece in packed.slices:
            out[piece.row0 : piece.row0 + piece.rows] = unpack_rows(format, piece.words, piece.rows, packed.k)
        return out
    blocks = packed.layout.blocks(packed.k)
    for piece in packed.slices:
        views = _views(packed.layout, piece.words, piece.rows, packed.k)
        for tile in _row_tiles(piece.rows, packed.k):
            count = tile.stop - tile.start
            elements = [np.ascontiguousarray(view[:, tile].T).reshape(count * blocks, -1) for view in views]
            rows = slice(piece.row0 + tile.start, piece.row0 + tile.stop)
            out[rows] = format.join(packed.layout.from_planes(elements)).reshape(count, -1)
    return out


def packer(
    runtime: Runtime, format: Format, blocks: U8, n: int, k: int, arrangement: str = ""
) -> Callable[[], DeviceWeights]:
    """A function that puts one more copy of w[n, k] on a device, from rows u8[any number, row bytes] repeated to n.

    Where the runtime packs on its card (`pack_weights`: in quads), there; else packed once on the host. arrangement:
    default the device's.
    """
    limits = runtime.limits()
    wanted = arrangement or limits.arrangement
    on_card = getattr(runtime, "pack_weights", None)
    if on_card is not None and limits.kind == "gpu" and wanted == "quads":
        return lambda: cast(DeviceWeights, on_card(format, blocks, n, k))
    packed = pack_repeated(format, blocks, n, k, limits.max_buffer_bytes, wanted)
    return lambda: upload(runtime, packed)


def upload(runtime: Runtime, packed: PackedWeights) -> DeviceWeights:
    """Put every slice into a buffer of its own on the device."""
    return DeviceWeights(
        packed.format.name,
        packed.layout.name,
        packed.n,
        packed.k,
        tuple(piece_of(s, runtime.upload(s.words)) for s in packed.slices),
        packed.experts,
    )


def piece_of(part: PackedSlice, buffer: Buffer) -> WeightSlice:
    """A packed slice that lies in `buffer`."""
    return WeightSlice(buffer, part.row0, part.rows, part.planes, part.expert0, part.experts, part.stride)
