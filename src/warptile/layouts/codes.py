"""Where an element's integer code lives: bit planes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.layouts.fields import U8, Plane

CHUNK = 32


def _every_byte(bits: int) -> np.uint64:
    """The low `bits` bits of all eight bytes."""
    return np.uint64(((1 << bits) - 1) * 0x0101010101010101)


def _fold(lanes: NDArray[Any], bits: int) -> NDArray[Any]:
    """Eight codes of `bits` bits a u64 to plane words: neighbouring quads merge in pairs until bytes are full."""
    words = lanes.view("<u4")
    while bits < 8:
        pairs = words.view("<u8")
        words = (pairs | pairs >> np.uint64(32 - bits)).astype("<u4")
        bits *= 2
    return words


def _unfold(words: NDArray[Any], bits: int) -> NDArray[Any]:
    """Inverse of `_fold`: plane words to a new array of u64."""
    words = np.array(words, dtype="<u4", order="C")
    half = 4
    while half >= bits:
        pairs = words.astype("<u8")
        pairs |= pairs << np.uint64(32 - half)
        pairs &= _every_byte(half)
        words = pairs.view("<u4")
        half //= 2
    return words.view("<u8")


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
        lanes = np.ascontiguousarray(codes).view("<u8")
        out: list[NDArray[Any]] = []
        low = 0
        for b in self.widths:
            part = lanes
            if len(self.widths) > 1:
                part = lanes >> np.uint64(low)
                part &= _every_byte(b)
            out.append(_fold(part, b))
            low += b
        return out

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> U8:
        """Inverse of `to_planes`."""
        lanes = _unfold(planes[0], self.widths[0])
        low = self.widths[0]
        for b, words in zip(self.widths[1:], planes[1:], strict=True):
            part = _unfold(words, b)
            part <<= np.uint64(low)
            lanes |= part
            low += b
        return lanes.view(np.uint8)

    def values(self, codes: U8) -> U8:
        """The codes themselves, u8[n, block]."""
        return codes

    def glsl_functions(self) -> str:
        """Functions that `glsl_load` calls: none."""
        return ""

    def glsl_members(self) -> str:
        """Members of `struct Chunk`."""
        return "".join(f"    uint q{p}[{b}];\n" for p, b in enumerate(self.widths))

    def glsl_words(self) -> tuple[str, ...]:
        """The members, word by word: the chunk's codes as the planes hold them."""
        return tuple(f"q{p}[{j}]" for p, b in enumerate(self.widths) for j in range(b))

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return sum(self.widths)

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
