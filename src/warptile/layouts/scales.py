"""Scale kinds with one level: a scale (and a minimum) straight from the file.

A scale kind says which arrays a block's scales are, in which planes they lie, what they mean on the host
(`values`) and how a chunk's scale and minimum are read on a device (`glsl_load`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from warptile.layouts.fields import F32, Fields, Plane, half_to_float

Arrays = Mapping[str, NDArray[Any]]


class Scales(Protocol):
    """A scale kind. `block`: elements a block of the file; `group`: elements that share a scale, seen by a chunk."""

    has_minimum: ClassVar[bool]

    @property
    def name(self) -> str: ...
    @property
    def block(self) -> int: ...
    @property
    def group(self) -> int: ...

    def planes(self) -> tuple[Plane, ...]:
        """The scale planes, in order."""
        ...

    def to_planes(self, scales: Arrays) -> list[NDArray[Any]]:
        """Scale arrays [n, per block] to plane elements [n, plane.per_block]."""
        ...

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Inverse of `to_planes`."""
        ...

    def values(self, fields: Fields) -> tuple[F32, F32 | None]:
        """Scale and minimum of each group, f32[n, block/group]."""
        ...

    def glsl_load(self, first: int) -> str:
        """Statements that set `c.d` (and `c.m`) for `chunk`, `row`, `rows`; `first` is the first scale plane."""
        ...


def chunk_block(block: int) -> str:
    """GLSL expression for the block that `chunk` (32 elements) lies in."""
    return "chunk" if block == 32 else f"(chunk / {block // 32}u)"


@dataclass(frozen=True)
class HalfScale:
    """fp16 `d` a block: u16 [K/block][N]. scale = d."""

    name: ClassVar[str] = "half"
    has_minimum: ClassVar[bool] = False
    block: int

    @property
    def group(self) -> int:
        """Elements a scale."""
        return self.block

    def planes(self) -> tuple[Plane, ...]:
        """One u16 plane."""
        return (Plane(16, 1),)

    def to_planes(self, scales: Arrays) -> list[NDArray[Any]]:
        """`d` as it is."""
        return [scales["d"]]

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """`d` as it is."""
        return {"d": planes[0]}

    def values(self, fields: Fields) -> tuple[F32, F32 | None]:
        """scale = d."""
        return half_to_float(fields.scales["d"]), None

    def glsl_load(self, first: int) -> str:
        """c.d = d."""
        return f"    c.d = plane_half({first}u, {chunk_block(self.block)} * rows + row);\n"


@dataclass(frozen=True)
class HalfScaleMinimum:
    """fp16 `d` and fp16 `m` a block as one word d | m << 16: u32 [K/block][N]. value = d * code + m."""

    name: ClassVar[str] = "halfmin"
    has_minimum: ClassVar[bool] = True
    block: int

    @property
    def group(self) -> int:
        """Elements a scale."""
        return self.block

    def planes(self) -> tuple[Plane, ...]:
        """One u32 plane."""
        return (Plane(32, 1),)

    def to_planes(self, scales: Arrays) -> list[NDArray[Any]]:
        """d | m << 16."""
        return [join_halves(scales["d"], scales["m"])]

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Inverse of `to_planes`."""
        d, m = cut_halves(planes[0])
        return {"d": d, "m": m}

    def values(self, fields: Fields) -> tuple[F32, F32 | None]:
        """scale = d, minimum = -m."""
        return half_to_float(fields.scales["d"]), -half_to_float(fields.scales["m"])

    def glsl_load(self, first: int) -> str:
        """c.d = d, c.m = -m."""
        return (
            f"    vec2 dm = unpackHalf2x16(W[P.plane[{first}] + {chunk_block(self.block)} * rows + row]);\n"
            "    c.d = dm.x;\n    c.m = -dm.y;\n"
        )


@dataclass(frozen=True)
class ExponentScale:
    """E8M0 exponent `e` a block: u8 [K/block][N]. scale = 2^(e - 128).

    That is half of the exponent's 2^(e - 127): the codebook holds doubled values, as the file format's own does.
    """

    name: ClassVar[str] = "e8m0"
    has_minimum: ClassVar[bool] = False
    block: int

    @property
    def group(self) -> int:
        """Elements a scale."""
        return self.block

    def planes(self) -> tuple[Plane, ...]:
        """One u8 plane."""
        return (Plane(8, 1),)

    def to_planes(self, scales: Arrays) -> list[NDArray[Any]]:
        """`e` as it is."""
        return [scales["e"]]

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """`e` as it is."""
        return {"e": planes[0]}

    def values(self, fields: Fields) -> tuple[F32, F32 | None]:
        """scale = 2^(e - 128), subnormal for e < 2."""
        e = fields.scales["e"].astype(np.uint32)
        bits = np.where(e < 2, np.uint32(0x00200000) << np.minimum(e, 2), (np.maximum(e, 1) - 1) << np.uint32(23))
        return bits.astype(np.uint32).view(np.float32), None

    def glsl_load(self, first: int) -> str:
        """c.d = 2^(e - 128)."""
        return (
            f"    uint e = plane_byte({first}u, {chunk_block(self.block)} * rows + row);\n"
            "    c.d = uintBitsToFloat(e < 2u ? 0x00200000u << e : (e - 1u) << 23);\n"
        )


def join_halves(low: NDArray[Any], high: NDArray[Any]) -> NDArray[Any]:
    """u16 arrays to u32: low | high << 16."""
    return low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)


def cut_halves(words: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """u32 to its low and high u16."""
    return (words & np.uint32(0xFFFF)).astype(np.uint16), (words >> np.uint32(16)).astype(np.uint16)
