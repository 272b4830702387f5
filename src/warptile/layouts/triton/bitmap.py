"""Where each bit of a file block goes in the quad arrangement, found by asking the host's packing.

Packing moves bits and flips some: it is a permutation of a block's bits, then an exclusive or. So the device needs no
code a format: it follows this map.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import UnusableInput
from warptile.layouts.triton.arrangement import arrangement

if TYPE_CHECKING:
    from warptile.formats import Format

_TURNS = 32


@dataclass(frozen=True)
class PlaneMap:
    """How one plane's elements are put together from the bytes of a row's span.

    An element is the OR over j of `turned(source[at[j]], turn[j] + more) & mask` for each (mask, more) of `parts[j]`,
    then the exclusive OR with its flip. `turned` rotates 32 bits to the left; source is the span's bytes as numbers of
    `unit` bytes, little-endian.

    span: elements along k that the map covers; source_bytes: file bytes they take; unit: 1 or 2. at, turns:
    i32[elements, moves]. parts: of each move; what every element of the plane has in common. masks: u32[elements,
    moves] where the elements have nothing in common: then each move has the one part (0, 0), and its mask is here.
    flips: u32[elements].
    """

    span: int
    source_bytes: int
    unit: int
    at: NDArray[np.int32]
    turns: NDArray[np.int32]
    parts: tuple[tuple[tuple[int, int], ...], ...]
    masks: NDArray[np.uint32] | None
    flips: NDArray[np.uint32]


@cache
def plane_maps(format: Format, k: int) -> tuple[PlaneMap, ...]:
    """The maps of a format's planes for rows of k elements, in order, the row units' plane left out.

    Raises UnusableInput where the format's packing is not a permutation of bits.
    """
    whole = arrangement(format.layout, k)
    span = max(whole.step, format.block_size, *(plane.span for plane in whole.planes[:-1]))
    own = arrangement(format.layout, span)
    nbytes = format.row_bytes(span)
    unit = 1 if format.block_bytes % 2 else 2
    probes = np.zeros((8 * nbytes + 1, nbytes), dtype=np.uint8)
    for bit in range(8 * nbytes):
        probes[bit, bit // 8] = 1 << bit % 8
    elements = own.to_planes(format.split(probes.reshape(-1, format.block_bytes)))[:-1]
    maps, seen = [], np.zeros(8 * nbytes, dtype=np.int64)
    for plane, values in zip(own.planes[:-1], elements, strict=True):
        bits = np.unpackbits(
            np.ascontiguousarray(values.reshape(len(probes), -1)).view(np.uint8), axis=1, bitorder="little"
        ).reshape(len(probes), -1, plane.bits)
        flips = bits[-1]
        changed = bits[:-1] ^ flips
        seen += changed.sum(axis=(1, 2), dtype=np.int64)
        if (changed.sum(axis=0) > 1).any():
            raise UnusableInput(f"{format.name}: packing is not a permutation of bits")
        source = np.where(changed.any(axis=0), changed.argmax(axis=0), -1)
        weights = 1 << np.arange(plane.bits, dtype=np.int64)
        found = [_moves(row, 8 * unit) for row in source]
        maps.append(_plane_map(span, nbytes, unit, found, (flips * weights).sum(axis=1).astype(np.uint32)))
    if (seen != 1).any():
        raise UnusableInput(f"{format.name}: packing is not a permutation of bits")
    return tuple(maps)


@dataclass(frozen=True)
class _Move:
    """Bits of an element that come from one source number. parts: (mask, turns beyond `turn`)."""

    at: int
    turn: int
    parts: tuple[tuple[int, int], ...]


def _moves(source: NDArray[np.int64], width: int) -> list[_Move]:
    """i64[bits] source bits of one element (-1: none), numbers of `width` bits; in order of the lowest bit they set."""
    masks: dict[int, dict[int, int]] = {}
    for position, bit in enumerate(source.tolist()):
        if bit >= 0:
            turns = masks.setdefault(bit // width, {})
            turn = (position - bit % width) % _TURNS
            turns[turn] = turns.get(turn, 0) | 1 << position
    moves = []
    for at, turns in masks.items():
        (first, mask), *others = sorted(turns.items(), key=lambda each: each[1] & -each[1])
        parts = ((mask, 0), *((other, (turn - first) % _TURNS) for turn, other in others))
        moves.append(_Move(at, first, parts))
    return sorted(moves, key=lambda move: move.parts[0][0] & -move.parts[0][0])


def _plane_map(span: int, nbytes: int, unit: int, found: list[list[_Move]], flips: NDArray[np.uint32]) -> PlaneMap:
    shapes = {tuple(move.parts for move in moves) for moves in found}
    if len(shapes) == 1:
        at = np.array([[move.at for move in moves] for moves in found], dtype=np.int32)
        turns = np.array([[move.turn for move in moves] for moves in found], dtype=np.int32)
        return PlaneMap(span, nbytes, unit, at, turns, shapes.pop(), None, flips)
    single = [[(m.at, (m.turn + more) % _TURNS, mask) for m in moves for mask, more in m.parts] for moves in found]
    most = max(map(len, single))
    table = np.array([moves + [(0, 0, 0)] * (most - len(moves)) for moves in single], dtype=np.int64)
    return PlaneMap(
        span, nbytes, unit, table[..., 0].astype(np.int32), table[..., 1].astype(np.int32), (((0, 0),),) * most,
        table[..., 2].astype(np.uint32), flips,
    )  # fmt: skip
