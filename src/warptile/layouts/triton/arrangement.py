"""How a packed weight lies in memory for Triton: quad words, as data, and its packing on the host.

A step is 32 * G elements along k (G chunks of 32). Inside a step, the matrix unit's register operand gives each lane of
a quad (c = 0..3) the elements k = 8 S + 2 c + e, S = 0 .. 4 G - 1 ("slots"), e = 0, 1. A code plane holds, for each row
and quad lane, exactly those elements, so that one load puts them where they are multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.contracts.errors import UnusableInput
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import Fields
from warptile.layouts.layout import Layout
from warptile.layouts.triton.codes import (
    bit_plane_shapes,
    bit_planes,
    bit_planes_back,
    trit_plane_shapes,
    trit_planes,
    trit_planes_back,
)
from warptile.layouts.triton.plane import QuadPlane
from warptile.layouts.triton.scales import ScalePlanes, scale_planes
from warptile.layouts.trits import TritPlane

NAME = "quads"
MOST_PLANES = 6
PLANE_BYTES = 64
ROW_GRANULE = 16
MINIMUM_SHARE = 2.0**-14
_ZERO_EXPONENT = 127


@dataclass(frozen=True)
class Arrangement:
    """The planes of a layout for rows of k elements; every plane is laid for the rows rounded up to 16, so that a load
    may take 16 rows at once.

    chunks: G, the chunks of 32 elements a step has: 8 where a trit block has 256 elements, else the largest of 4, 2, 1
    whose step divides k. planes: code planes, then scale planes, then one byte a row: the biased exponent of the row's
    unit u = 2^(e - 127), the power of two with the largest of |scale| and |minimum| / 2^14 of the row in
    [16 u / 2^14, 32 u / 2^14). Dividing by u takes the row's scales, times 2^24, into fp16's upper range, and keeps its
    minimums, times 2^10, within fp16; the unit is derived, not part of the file's content.
    """

    layout: Layout
    k: int
    chunks: int
    code_planes: tuple[QuadPlane, ...]
    scales: ScalePlanes

    @property
    def name(self) -> str:
        """`LAYOUT@quadsG`."""
        return f"{self.layout.name}@{NAME}{self.chunks}"

    @property
    def step(self) -> int:
        """Elements along k that a kernel takes at a time."""
        return 32 * self.chunks

    @property
    def planes(self) -> tuple[QuadPlane, ...]:
        """All planes, in order."""
        return (*self.code_planes, *self.scales.planes, QuadPlane(8, self.k, 1))

    def offsets(self, rows: int) -> tuple[tuple[int, ...], int]:
        """Where each plane of a slice of `rows` rows starts, in 32-bit words, and the slice's words."""
        at = [0]
        padded = -(-rows // ROW_GRANULE) * ROW_GRANULE
        for plane in self.planes:
            nbytes = padded * (self.k // plane.span) * plane.per * plane.bits // 8
            at.append(at[-1] + -(-nbytes // PLANE_BYTES) * (PLANE_BYTES // 4))
        return tuple(at[:-1]), at[-1]

    def to_planes(self, fields: Fields) -> list[NDArray[Any]]:
        """The content of whole rows (their blocks one after another) as elements [rows, k/span, per], plane by
        plane."""
        blocks = self.k // self.layout.block
        rows = len(fields.codes) // blocks
        codes = fields.codes.reshape(rows, -1)
        if isinstance(self.layout.codes, TritPlane):
            planes = trit_planes(self.layout.codes, codes.reshape(rows, blocks, -1))
        else:
            planes = bit_planes(self.code_planes, _widths(self.layout), codes, self.chunks)
        planes += self.scales.to_planes(fields.scales, rows)
        return [*planes, self._exponents(fields, rows)]

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> Fields:
        """Inverse of `to_planes`."""
        cut = len(self.code_planes)
        if isinstance(self.layout.codes, TritPlane):
            codes = trit_planes_back(self.layout.codes, planes[:cut])
        else:
            codes = bit_planes_back(self.code_planes, _widths(self.layout), planes[:cut], self.chunks)
        return Fields(codes.reshape(-1, _code_bytes(self.layout)), self.scales.from_planes(planes[cut:-1]))

    def _exponents(self, fields: Fields, rows: int) -> NDArray[np.uint8]:
        with np.errstate(invalid="ignore"):
            scale, minimum = self.layout.scales.values(fields)
            largest = np.abs(scale.reshape(rows, -1)).max(axis=1)
            if minimum is not None:
                most = np.abs(np.asarray(minimum).reshape(rows, -1)).max(axis=1) * np.float32(MINIMUM_SHARE)
                largest = np.maximum(largest, most)
        return unit_exponents(largest)[:, None, None]


def unit_exponents(largest: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Biased exponents of the units of rows whose largest |scale| is f32[rows]: floor(log2 largest) + 10 + 127.

    127 (a unit of 1) where the largest scale is 0 or not finite; kept within 35..253, so that 1/u and 2^24/u are
    normal.
    """
    biased = (np.ascontiguousarray(largest, np.float32).view(np.uint32) >> np.uint32(23) & np.uint32(255)).astype(int)
    usable = (largest > 0) & np.isfinite(largest)
    return np.where(usable, np.clip(biased + 10, 35, 253), _ZERO_EXPONENT).astype(np.uint8)


@cache
def arrangement(layout: Layout, k: int) -> Arrangement:
    """The arrangement of `layout` for rows of k elements.

    Raises UnusableInput where k is not a positive multiple of the layout's block or of 32.
    """
    layout.blocks(k)
    if k % 32:
        raise UnusableInput(f"a row of K = {k} elements is not a whole number of chunks of 32")
    if isinstance(layout.codes, TritPlane):
        chunks = layout.codes.block // 32
        codes = trit_plane_shapes(layout.codes)
    else:
        chunks = next(g for g in (4, 2, 1) if k % (32 * g) == 0)
        codes = bit_plane_shapes(_widths(layout), chunks)
    return Arrangement(layout, k, chunks, codes, scale_planes(layout.scales, 32 * chunks))


def _widths(layout: Layout) -> tuple[int, ...]:
    if not isinstance(layout.codes, BitPlanes):
        raise UnusableInput(f"layout {layout.name} has no quad arrangement")
    return layout.codes.widths


def _code_bytes(layout: Layout) -> int:
    codes = layout.codes
    return codes.nbytes if isinstance(codes, TritPlane) else layout.block
