"""Base-3 codes: bytes that hold up to five digits each, kept as the file has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from warptile.layouts.codes import CHUNK, BitPlanes
from warptile.layouts.fields import F32, U8, Fields, Plane, half_to_float
from warptile.layouts.scales import Arrays

DIGITS = 5
_TWO_BITS = BitPlanes((2,))


@cache
def _digit_table() -> U8:
    """u8[5, 256]: digit n of byte b = (((b * 3^n) mod 256) * 3) >> 8, defined for every byte."""
    bytes_ = np.arange(256)
    return np.array([((bytes_ * 3**n) % 256 * 3) >> 8 for n in range(DIGITS)], dtype=np.uint8)


@dataclass(frozen=True)
class TritPlane:
    """Words [K/block][bytes/4][N]: the block's bytes in file order, base-3 bytes first.

    stages: (bytes, digits) in order; element e of a stage is digit e div bytes of its byte e mod bytes. nbytes: bytes a
    block, a multiple of 4; what follows the base-3 bytes (an fp16 scale) is carried along.
    """

    stages: tuple[tuple[int, int], ...]
    nbytes: int

    @property
    def block(self) -> int:
        """Elements a block."""
        return sum(count * digits for count, digits in self.stages)

    @property
    def name(self) -> str:
        """`t` and the bytes a block."""
        return f"t{self.nbytes}"

    def planes(self, block: int) -> tuple[Plane, ...]:
        """One plane of whole words."""
        return (Plane(32, self.nbytes // 4),)

    def to_planes(self, codes: U8) -> list[NDArray[Any]]:
        """Bytes as words."""
        return [np.ascontiguousarray(codes).view("<u4")]

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> U8:
        """Words as bytes."""
        return np.ascontiguousarray(planes[0], dtype="<u4").view(np.uint8)

    def values(self, codes: U8) -> U8:
        """u8[n, block]: the digits 0, 1, 2 of every element."""
        out = np.empty((len(codes), self.block), dtype=np.uint8)
        table = _digit_table()
        byte = element = 0
        for count, digits in self.stages:
            for n in range(digits):
                out[:, element : element + count] = np.take(table[n], codes[:, byte : byte + count])
                element += count
            byte += count
        return out

    def from_digits(self, digits: U8) -> U8:
        """u8[n, block] digits to base-3 bytes: ceil(256 * Q / 243), Q = sum d_n * 3^(4 - n), missing digits 0."""
        parts = []
        element = 0
        for count, held in self.stages:
            stage = digits[:, element : element + count * held].reshape(len(digits), held, count).astype(np.uint16)
            powers = np.array([3 ** (4 - n) for n in range(held)], dtype=np.uint16)
            q = (stage * powers[:, None]).sum(axis=1, dtype=np.uint16).astype(np.uint32)
            parts.append(((q * 256 + 242) // 243).astype(np.uint8))
            element += count * held
        return np.concatenate(parts, axis=1)

    def _quads(self) -> list[list[tuple[int, int]]]:
        """For each chunk of a block, where its eight quads (four elements) lie: (word, digit of the lowest byte).

        A stage of two bytes fills half a word: its quads hold digits (n, n, n + 1, n + 1) of that half.
        """
        quads: list[tuple[int, int]] = []
        byte = 0
        for count, digits in self.stages:
            if count == 2:
                quads += [(byte // 4, n) for n in range(0, digits, 2)]
            else:
                quads += [(byte // 4 + w, n) for n in range(digits) for w in range(count // 4)]
            byte += count
        return [quads[c : c + 8] for c in range(0, len(quads), 8)]

    def _half_word(self) -> int | None:
        """The word of a two-byte stage, None where there is none."""
        byte = 0
        for count, _ in self.stages:
            if count == 2:
                return byte // 4
            byte += count
        return None

    def glsl_members(self) -> str:
        """Members of `struct Chunk`: the digits, two bits each, as a 2-bit plane lays them."""
        return _TWO_BITS.glsl_members()

    def glsl_words(self) -> tuple[str, ...]:
        """The members, word by word."""
        return _TWO_BITS.glsl_words()

    @property
    def bits(self) -> int:
        """Bits of a digit, unpacked."""
        return _TWO_BITS.bits

    def glsl_load(self) -> str:
        """Unpack the chunk's digits: the words and powers of three of its quads come from constants picked by phase."""
        chunks = self._quads()
        phases = len(chunks)

        def pick(values: Sequence[int]) -> str:
            text = f"{values[-1]:#x}u"
            for phase in range(phases - 2, -1, -1):
                text = f"phase == {phase}u ? {values[phase]:#x}u : {text}"
            return text

        words = [sum(word << 4 * i for i, (word, _) in enumerate(quads)) for quads in chunks]
        powers = [
            [sum(3**digit << 8 * i for i, (_, digit) in enumerate(quads[h : h + 4])) for quads in chunks]
            for h in (0, 4)
        ]
        half = self._half_word()
        lines = [
            f"    uint phase = chunk & {phases - 1}u;\n",
            f"    uint base = P.plane[0] + (chunk / {phases}u) * {self.nbytes // 4}u * rows + row;\n",
            f"    uint where = {pick(words)};\n",
            f"    uint power0 = {pick(powers[0])};\n",
            f"    uint power1 = {pick(powers[1])};\n",
            "    uint w;\n",
        ]
        for i in range(8):
            lines.append(f"    w = W[base + ((where >> {4 * i}u) & 15u) * rows];\n")
            at = [phase for phase, quads in enumerate(chunks) if quads[i][0] == half]
            if at:
                lines.append(f"    w = phase == {at[0]}u ? two_digits(w) : w;\n")
            digits = f"trits(w, (power{i // 4} >> {8 * (i % 4)}u) & 255u)"
            lines.append(f"    c.q0[{i // 4}] {'|=' if i % 4 else '='} {digits} << {2 * (i % 4)}u;\n")
        return "".join(lines)

    def glsl_codes4(self) -> str:
        """Expression: the digits of elements 4i .. 4i+3, one a byte."""
        return _TWO_BITS.glsl_codes4()

    def glsl_functions(self) -> str:
        """`trits`: one digit of each of four base-3 bytes; `two_digits`: two bytes and, above them, thrice them."""
        return """\
uint trits(uint w, uint power) {
    uint even = ((((w & 0x00ff00ffu) * power) & 0x00ff00ffu) * 3u >> 8) & 0x00030003u;
    uint odd = (((((w >> 8) & 0x00ff00ffu) * power) & 0x00ff00ffu) * 3u >> 8) & 0x00030003u;
    return even | (odd << 8);
}
uint two_digits(uint w) {
    return (w & 0xffffu) | (((w & 0xffu) * 3u & 0xffu) << 16) | (((w >> 8 & 0xffu) * 3u & 0xffu) << 24);
}
"""


@dataclass(frozen=True)
class HalfInTrits:
    """fp16 d in the upper half of the trit plane's last word: no plane of its own. scale = d."""

    name: ClassVar[str] = "inline"
    has_minimum: ClassVar[bool] = False
    block: int
    nbytes: int

    @property
    def group(self) -> int:
        """Elements a scale."""
        return self.block

    def planes(self) -> tuple[Plane, ...]:
        """None."""
        return ()

    def to_planes(self, scales: Arrays) -> list[NDArray[Any]]:
        """Nothing."""
        return []

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Nothing."""
        return {}

    def values(self, fields: Fields) -> tuple[F32, F32 | None]:
        """scale = d, the last two of the block's bytes."""
        return half_to_float(np.ascontiguousarray(fields.codes[:, -2:]).view("<u2")), None

    def glsl_load(self, first: int) -> str:
        """c.d = d."""
        words = self.nbytes // 4
        return (
            f"    c.d = unpackHalf2x16(W[P.plane[0] + ((chunk / {self.block // CHUNK}u) * {words}u + {words - 1}u)"
            " * rows + row]).y;\n"
        )
