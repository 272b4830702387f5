"""A layout: what a packed weight is on a device, as data, and its decoder in GLSL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warptile.contracts.errors import UnusableInput
from warptile.layouts.codes import CHUNK
from warptile.layouts.fields import F32, U8, Fields, Plane
from warptile.layouts.int8 import int8_decoder
from warptile.layouts.scales import Scales
from warptile.layouts.wide import load_chunks, wide_reads

_HELPERS = {
    "plane_u16(": """\
uint plane_u16(uint plane, uint e) {
    return (W[P.plane[plane] + (e >> 1)] >> (16u * (e & 1u))) & 0xffffu;
}
""",
    "plane_half(": """\
float plane_half(uint plane, uint e) { return unpackHalf2x16(plane_u16(plane, e)).x; }
""",
    "plane_byte(": """\
uint plane_byte(uint plane, uint e) {
    return (W[P.plane[plane] + (e >> 2)] >> (8u * (e & 3u))) & 0xffu;
}
""",
}


class Codes(Protocol):
    """Where codes live: bit planes or a trit plane."""

    @property
    def name(self) -> str: ...
    def planes(self, block: int) -> tuple[Plane, ...]: ...
    def to_planes(self, codes: U8) -> list[NDArray[Any]]: ...
    def from_planes(self, planes: Sequence[NDArray[Any]]) -> U8: ...
    def values(self, codes: U8) -> U8: ...
    def glsl_functions(self) -> str: ...
    @property
    def bits(self) -> int: ...
    def glsl_members(self) -> str: ...
    def glsl_words(self) -> tuple[str, ...]: ...
    def glsl_load(self) -> str: ...
    def glsl_codes4(self) -> str: ...


@dataclass(frozen=True)
class Codebook:
    """What a code stands for, where that is not the code itself: value of code q is values[q] (int8)."""

    name: str
    values: tuple[int, ...]

    def words(self) -> list[int]:
        """The values as bytes of 32-bit words, lowest byte first."""
        return [int(w) for w in np.array(self.values, dtype=np.int8).view("<u4")]


@dataclass(frozen=True)
class Layout:
    """Arrangement of a packed weight. value = scale * (code - offset) - minimum, or scale * codebook[code].

    codes: code planes; scales: scale planes. Every product of scale and code is exact in float32 for every kind
    here (at most 24 significant bits), so the decoders agree to the bit whether or not a device contracts.
    """

    codes: Codes
    scales: Scales
    offset: int = 0
    codebook: Codebook | None = None

    @property
    def name(self) -> str:
        """`CODES.SCALES.BLOCK`, then the offset or the codebook where there is one."""
        tail = f".{self.codebook.name}" if self.codebook else f".off{self.offset}" if self.offset else ""
        return f"{self.codes.name}.{self.scales.name}.{self.scales.block}{tail}"

    @property
    def block(self) -> int:
        """Elements a block: what K must be a multiple of."""
        return self.scales.block

    @property
    def planes(self) -> tuple[Plane, ...]:
        """Code planes, then scale planes."""
        return self.codes.planes(self.block) + self.scales.planes()

    def blocks(self, k: int) -> int:
        """Blocks a row of k elements. Raises UnusableInput where k is not a positive multiple of the block."""
        if k <= 0 or k % self.block:
            raise UnusableInput(f"a row of K = {k} elements is not a whole number of blocks of {self.block}")
        return k // self.block

    def offsets(self, rows: int, k: int) -> tuple[tuple[int, ...], int]:
        """Where each plane of a slice starts, in words, and the slice's words."""
        blocks = self.blocks(k)
        at = [0]
        for plane in self.planes:
            at.append(at[-1] + plane.words(rows, blocks))
        return tuple(at[:-1]), at[-1]

    def to_planes(self, fields: Fields) -> list[NDArray[Any]]:
        """The content of n blocks as plane elements [n, plane.per_block], plane by plane."""
        return self.codes.to_planes(fields.codes) + self.scales.to_planes(fields.scales)

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> Fields:
        """Inverse of `to_planes`."""
        cut = len(self.codes.planes(self.block))
        return Fields(self.codes.from_planes(planes[:cut]), self.scales.from_planes(planes[cut:]))

    def values(self, fields: Fields) -> F32:
        """f32[n, block]: the value of every element, in the reference decode's order of operations."""
        with np.errstate(invalid="ignore"):  # an infinite or NaN d is the file's to have
            scale, minimum = self.scales.values(fields)
        codes = self.codes.values(fields.codes)
        n, groups = scale.shape
        if self.codebook is not None:
            steps = np.array(self.codebook.values, dtype=np.float32)[codes]
        else:
            steps = codes.astype(np.float32)
            if self.offset:
                steps -= np.float32(self.offset)
        out = steps.reshape(n, groups, -1)
        with np.errstate(invalid="ignore", over="ignore"):
            out *= scale[:, :, None]
            if minimum is not None:
                out -= minimum[:, :, None]
        return out.reshape(n, -1)

    @property
    def groups_per_chunk(self) -> int:
        """Scales a chunk of 32 elements needs: 2 where a group is 16 elements, else 1."""
        return max(1, CHUNK // self.scales.group)

    @property
    def signed_minimum(self) -> bool:
        """Whether value = scale * s - minimum needs its minimum, s being the signed byte of `codes_s4`."""
        return self.scales.has_minimum or (self.codebook is not None and len(self.codebook.values) == 2)

    @property
    def has_int8(self) -> bool:
        """Whether every code, less its offset or looked up, is a signed byte: `glsl_int8` exists."""
        return self.codebook is not None or self.codes.bits < 8 or self.offset == 128

    def glsl_int8(self) -> str:
        """What an integer kernel adds to `glsl()`; see `layouts.int8`."""
        codebook = self.codebook.words() if self.codebook and len(self.codebook.values) > 2 else None
        return int8_decoder(self.codes.glsl_words(), self.codes.bits, self.offset, codebook)

    def glsl(self, rows: int = 1) -> str:
        """The decoder: `struct Chunk`, `load_chunk`, `codes4` (codes, one a byte), `decode4` and `load_chunks`.

        Reads `W[]` at `P.plane[i]`; i of `decode4` is meant to be constant after unrolling. `load_chunks(row, chunk,
        rows, c)` fills the chunks of `rows` (1, 2 or 4) neighbouring rows from as few loads as one row would take;
        row and the slice's rows must be multiples of it. With rows > 1, `load_chunk` serves `load_chunks` alone.
        """
        kind = "vec2" if self.groups_per_chunk == 2 else "float"
        affine = self.codebook is None or len(self.codebook.values) == 2
        has_m = affine and (self.scales.has_minimum or self.offset != 0 or self.codebook is not None)
        load = self.codes.glsl_load() + self.scales.glsl_load(len(self.codes.planes(self.block)))
        if affine and self.codebook is not None:
            low, high = self.codebook.values
            load += f"    c.m = c.d * {float(-low)};\n    c.d *= {float(high - low)};\n"
        elif self.offset:
            load += f"    c.m = c.d * {float(self.offset)};\n"
        members = self.codes.glsl_members() + f"    {kind} d;\n" + (f"    {kind} m;\n" if has_m else "")
        at = "[i / 4u]" if kind == "vec2" else ""
        minus = f" - c.m{at}" if has_m else ""
        lookup, code = "", "vec4(bytes4(codes4(c, i)))"
        if not affine and self.codebook is not None:
            lookup, code = _glsl_lookup(self.codebook), "codebook4(bytes4(codes4(c, i)))"
        text = f"""\
struct Chunk {{
{members}}};
{self.codes.glsl_functions()}Chunk load_chunk(uint row, uint chunk, uint rows) {{
    Chunk c;
{load}    return c;
}}
uint codes4(Chunk c, uint i) {{
    return {self.codes.glsl_codes4()};
}}
ivec4 bytes4(uint w) {{
    return ivec4(w & 255u, (w >> 8) & 255u, (w >> 16) & 255u, w >> 24);
}}
{lookup}vec4 decode4(Chunk c, uint i) {{
    return {code} * c.d{at}{minus};
}}
"""
        return wide_reads(text, rows) if rows > 1 else _with_helpers(text) + load_chunks(1)


def _with_helpers(text: str) -> str:
    """`text` with the plane accessors it calls before it."""
    needed = ""
    for call in ("plane_half(", "plane_byte(", "plane_u16("):
        if call in text or call in needed:
            needed = _HELPERS[call] + needed
    return needed + text


def _glsl_lookup(codebook: Codebook) -> str:
    """`codebook4`: four codes (0..15) to their int8 values, by selects and shifts alone."""
    a, b, c, d = (f"ivec4({w:#010x})" for w in codebook.words())
    return f"""\
vec4 codebook4(ivec4 q) {{
    bvec4 odd = greaterThan(q & 4, ivec4(0));
    ivec4 w = mix(mix({a}, {b}, odd), mix({c}, {d}, odd), greaterThan(q, ivec4(7)));
    return vec4((w << (24 - 8 * (q & 3))) >> 24);
}}
"""
