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


@dataclass(frozen=True)
class PlaneMap:
    """How one plane's elements are put together from the bytes of a row's span.

    span: elements along k that the map covers; source_bytes: file bytes they take. moves: i32[elements, runs], each run
    byte << 16 | right shift << 12 | bits << 8 | left shift (bits 0: no run). flips: i64[elements] to exclusive-or with.
    """

    span: int
    source_bytes: int
    moves: NDArray[np.int32]
    flips: NDArray[np.int64]


@cache
def plane_maps(format: Format, k: int) -> tuple[PlaneMap, ...]:
    """The maps of a format's planes for rows of k elements, in order, the row units' plane left out.

    Raises UnusableInput where the format's packing is not a permutation of bits.
    """
    whole = arrangement(format.layout, k)
    span = max(whole.step, format.block_size, *(plane.span for plane in whole.planes[:-1]))
    own = arrangement(format.layout, span)
    nbytes = format.row_bytes(span)
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
        maps.append(PlaneMap(span, nbytes, _runs(source), (flips * weights).sum(axis=1)))
    if (seen != 1).any():
        raise UnusableInput(f"{format.name}: packing is not a permutation of bits")
    return tuple(maps)


def _runs(source: NDArray[np.int64]) -> NDArray[np.int32]:
    """i64[elements, bits] source bits (-1: none) to runs that keep within a byte."""
    rows = []
    for bits in source:
        runs: list[list[int]] = []
        for position, bit in enumerate(bits):
            if bit < 0:
                continue
            if runs and bit % 8 and runs[-1][0] + runs[-1][1] == bit and runs[-1][2] + runs[-1][1] == position:
                runs[-1][1] += 1
            else:
                runs.append([int(bit), 1, position])
        rows.append([bit // 8 << 16 | bit % 8 << 12 | count << 8 | position for bit, count, position in runs])
    most = max(map(len, rows))
    return np.array([row + [0] * (most - len(row)) for row in rows], dtype=np.int32)
