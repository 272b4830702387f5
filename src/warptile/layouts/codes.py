"""Where an element's integer code lives: bit planes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.layouts.fields import U8, Plane

CHUNK = 32


@dataclass(frozen=True)
class BitPlanes:
    """A code of sum(widths) bits, cut into planes of 1, 2, 4 or 8 bits, lowest bits first.

    Words [K/32][b][N] a plane. Step s (0 <= s < 8/b) of word j holds elements 4 * (j * 8/b + s) .. + 3 of the
    chunk, one a byte: `(word >> (b * s)) & (mask * 0x01010101)`.
    """

    widths: tuple[int, ...]

    @property
    def name(self) -> str:
        """`b4`, `b4+1` and so on."""
        return "b" + "+".join(str(w) for w in self.widths)

    def planes(self, block: int) -> tuple[Plane, ...]:
        """The code planes of blocks of `block` elements."""
        return tuple(Plane(32, block // CHUNK * b) for b in self.widths)

    def to_planes(self, codes: U8) -> list[NDArray[Any]]:
        """u8[n, block] codes to u32[n, block/32 * b] words, one array a plane."""
        out: list[NDArray[Any]] = []
        low = 0
        for b in self.widths:
            part = codes if len(self.widths) == 1 else (codes >> low) & np.uint8((1 << b) - 1)
            quads = np.ascontiguousarray(part).view("<u4").reshape(len(codes), -1, 8 // b)
            words = quads[:, :, 0].copy() if b < 8 else quads[:, :, 0]
            for step in range(1, 8 // b):
                words |= quads[:, :, step] << np.uint32(b * step)
            out.append(words)
            low += b
        return out

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> U8:
        """Inverse of `to_planes`."""
        codes: U8 | None = None
        low = 0
        for b, words in zip(self.widths, planes, strict=True):
            quads = np.empty((*words.shape, 8 // b), dtype="<u4")
            mask = np.uint32(((1 << b) - 1) * 0x01010101)
            for step in range(8 // b):
                quads[:, :, step] = (words >> np.uint32(b * step)) & mask
            part = quads.reshape(len(words), -1).view(np.uint8)
            codes = part if codes is None else codes | part << np.uint8(low)
            low += b
        if codes is None:
            raise ValueError("a code needs at least one plane")
        return codes

    def values(self, codes: U8) -> U8:
        """The codes themselves, u8[n, block]."""
        return codes

    def glsl_members(self) -> str:
        """Members of `struct Chunk`."""
        return "".join(f"    uint q{p}[{b}];\n" for p, b in enumerate(self.widths))

    def glsl_load(self) -> str:
        """Statements of `load_chunk` that fill the members."""
        lines = []
        for p, b in enumerate(self.widths):
            lines.append(f"    uint at{p} = P.plane[{p}] + chunk * {b}u * rows + row;\n")
            lines += [f"    c.q{p}[{j}] = W[at{p} + {j}u * rows];\n" for j in range(b)]
        return "".join(lines)

    def glsl_codes4(self) -> str:
        """Expression: the codes of elements 4i .. 4i+3, one a byte."""
        terms = []
        low = 0
        for p, b in enumerate(self.widths):
            steps = 8 // b
            term = f"c.q{p}[i / {steps}u]"
            if b < 8:
                mask = ((1 << b) - 1) * 0x01010101
                term = f"(({term} >> ({b}u * (i % {steps}u))) & {mask:#010x}u)"
            terms.append(f"({term} << {low}u)" if low else term)
            low += b
        return " | ".join(terms)
