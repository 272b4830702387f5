"""Scale kinds of few bits: odd numbers of four bits under a superblock's fp16 scale, and E4M3 bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from warptile.layouts.fields import F32, Fields, Plane, half_to_float
from warptile.layouts.scales import Arrays
from warptile.layouts.superblock_scales import SUPERBLOCK


@dataclass(frozen=True)
class OddScale:
    """Groups of 16 or 32 (IQ1, IQ2, IQ3): scale = factor * d * (2 sc + 1), sc of 4 bits, factor a power of two.

    Scales: d u16[n, 1]; sc u8[n, 256 / group]. Planes: u16 [K/256][N] d; for groups of 32 u32 [K/256][N], sc[j] at bit
    4j; for groups of 16 u8 [K/32][N], the chunk's two, the first in the low nibble.
    """

    has_minimum: ClassVar[bool] = False
    block: ClassVar[int] = SUPERBLOCK
    group: int
    factor: float

    @property
    def name(self) -> str:
        """`odd16` or `odd32`, then 1 / factor."""
        return f"odd{self.group}f{round(1 / self.factor)}"

    def planes(self) -> tuple[Plane, ...]:
        """d, sc."""
        return (Plane(16, 1), Plane(32, 1) if self.group == 32 else Plane(8, 8))

    def to_planes(self, scales: Arrays) -> list[NDArray[Any]]:
        """Planes as the class says."""
        sc = scales["sc"]
        pairs = np.ascontiguousarray(sc[:, 0::2] | sc[:, 1::2] << np.uint8(4))
        return [scales["d"], pairs.view("<u4") if self.group == 32 else pairs]

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Inverse of `to_planes`."""
        pairs = np.ascontiguousarray(planes[1]).view(np.uint8)
        both = np.stack([pairs & np.uint8(15), pairs >> np.uint8(4)], axis=-1)
        return {"d": planes[0], "sc": both.reshape(len(pairs), -1)}

    def values(self, fields: Fields) -> tuple[F32, F32 | None]:
        """factor * d * (2 sc + 1)."""
        odd = fields.scales["sc"].astype(np.float32) * np.float32(2) + np.float32(1)
        return half_to_float(fields.scales["d"]) * odd * np.float32(self.factor), None

    def glsl_load(self, first: int) -> str:
        """c.d = factor * d * (2 sc + 1), a vec2 for groups of 16."""
        d = f"plane_half({first}u, (chunk / 8u) * rows + row) * {self.factor!r}"
        if self.group == 32:
            word = f"W[P.plane[{first + 1}] + (chunk / 8u) * rows + row]"
            return f"    c.d = {d} * float((({word} >> (4u * (chunk & 7u))) & 15u) * 2u + 1u);\n"
        return (
            f"    uint two = plane_byte({first + 1}u, chunk * rows + row);\n"
            f"    c.d = {d} * vec2((two & 15u) * 2u + 1u, (two >> 4) * 2u + 1u);\n"
        )


@dataclass(frozen=True)
class MiniFloatScale:
    """Unsigned E4M3 bytes, one a group of 16, blocks of 64 (NVFP4): scale = half the byte's number.

    Half, since the codebook holds doubled values. With x the byte, m = x mod 8 and e = (x / 8) mod 16: m * 2^-10 for
    e = 0, else (8 + m) * 2^(e - 11); 0 for x = 0x7f, which stands for NaN.

    Scales: s u8[n, 4]. Plane: u16 [K/32][N], the chunk's two.
    """

    name: ClassVar[str] = "e4m3"
    has_minimum: ClassVar[bool] = False
    block: ClassVar[int] = 64
    group: ClassVar[int] = 16

    def planes(self) -> tuple[Plane, ...]:
        """Pairs of s."""
        return (Plane(16, 2),)

    def to_planes(self, scales: Arrays) -> list[NDArray[Any]]:
        """Pairs of s."""
        return [np.ascontiguousarray(scales["s"]).view("<u2")]

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Inverse of `to_planes`."""
        return {"s": np.ascontiguousarray(planes[0], dtype="<u2").view(np.uint8)}

    def values(self, fields: Fields) -> tuple[F32, F32 | None]:
        """The class's formula."""
        x = fields.scales["s"]
        low = (x & np.uint8(127)).astype(np.uint32)
        normal = ((low << np.uint32(20)) + np.uint32(119 << 23)).view(np.float32)
        found = np.where(low < 8, low.astype(np.float32) * np.float32(2.0**-10), normal)
        return np.where(x == 0x7F, np.float32(0), found), None

    def glsl_load(self, first: int) -> str:
        """c.d = the chunk's two scales."""
        return (
            f"    uint two = plane_u16({first}u, chunk * rows + row);\n"
            "    uvec2 s = uvec2(two & 255u, two >> 8);\n"
            "    uvec2 low = s & 127u;\n"
            "    vec2 normal = uintBitsToFloat((low << 20) + (119u << 23));\n"
            "    c.d = mix(normal, vec2(low) * 0.0009765625, lessThan(low, uvec2(8u)));\n"
            "    c.d = mix(c.d, vec2(0.0), equal(s, uvec2(127u)));\n"
        )
