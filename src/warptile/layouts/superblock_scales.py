"""Scale kinds with two levels: fp16 scales of a 256-element superblock times small integer scales of its groups.

The integer scales are laid so that the chunk that needs them finds them by shifts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from warptile.layouts.fields import F32, Fields, Plane, half_to_float
from warptile.layouts.scales import Arrays, cut_halves, join_halves

SUPERBLOCK = 256
_NIBBLE_SHIFTS = np.arange(8, dtype=np.uint32) * np.uint32(4)


def pack_six_bit_pairs(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Eight pairs of 6-bit numbers u8[n, 8] to three words u32[n, 3].

    Byte j of words 0 and 1 together is low nibble of a[j] | low nibble of b[j] << 4; nibble j of word 2 is
    (a[j] >> 4) | (b[j] >> 4) << 2.
    """
    words = np.empty((len(a), 3), dtype=np.uint32)
    words[:, :2] = ((a & np.uint8(15)) | (b & np.uint8(15)) << np.uint8(4)).view("<u4")
    high = (a >> np.uint8(4)) | (b >> np.uint8(4)) << np.uint8(2)
    words[:, 2] = np.bitwise_or.reduce(high.astype(np.uint32) << _NIBBLE_SHIFTS, axis=1)
    return words


def cut_six_bit_pairs(words: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Inverse of `pack_six_bit_pairs`."""
    low = np.ascontiguousarray(words[:, :2], dtype="<u4").view(np.uint8)
    high = (words[:, 2:] >> _NIBBLE_SHIFTS).astype(np.uint8)
    a = (low & np.uint8(15)) | (high & np.uint8(3)) << np.uint8(4)
    b = (low >> np.uint8(4)) | (high >> np.uint8(2) & np.uint8(3)) << np.uint8(4)
    return a, b


def glsl_six_bit_pair(plane: int) -> str:
    """Statements that leave the pair of `chunk` in uints `a` and `b`."""
    return (
        f"    uint sub = P.plane[{plane}] + (chunk / 8u) * 3u * rows + row;\n"
        "    uint low = W[sub + ((chunk >> 2) & 1u) * rows] >> (8u * (chunk & 3u));\n"
        "    uint high = W[sub + 2u * rows] >> (4u * (chunk & 7u));\n"
        "    uint a = (low & 15u) | ((high & 3u) << 4);\n"
        "    uint b = ((low >> 4) & 15u) | ((high & 12u) << 2);\n"
    )


@dataclass(frozen=True)
class SixBitScaleMinimum:
    """Eight groups of 32 (Q4_K, Q5_K): scale = d * sc, minimum = dmin * mn, sc and mn of 6 bits.

    Scales: d, dmin u16[n, 1]; sc, mn u8[n, 8]. Planes: u32 [K/256][N] d | dmin << 16; u32 [K/256][3][N] the pairs
    (sc, mn) as `pack_six_bit_pairs` lays them.
    """

    name: ClassVar[str] = "k6min"
    has_minimum: ClassVar[bool] = True
    block: ClassVar[int] = SUPERBLOCK
    group: ClassVar[int] = 32

    def planes(self) -> tuple[Plane, ...]:
        """(d, dmin) words, pair words."""
        return (Plane(32, 1), Plane(32, 3))

    def to_planes(self, scales: Arrays) -> list[NDArray[Any]]:
        """Words as the class says."""
        return [join_halves(scales["d"], scales["dmin"]), pack_six_bit_pairs(scales["sc"], scales["mn"])]

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Inverse of `to_planes`."""
        d, dmin = cut_halves(planes[0])
        sc, mn = cut_six_bit_pairs(planes[1])
        return {"d": d, "dmin": dmin, "sc": sc, "mn": mn}

    def values(self, fields: Fields) -> tuple[F32, F32 | None]:
        """d * sc, dmin * mn."""
        s = fields.scales
        return (
            half_to_float(s["d"]) * s["sc"].astype(np.float32),
            half_to_float(s["dmin"]) * s["mn"].astype(np.float32),
        )

    def glsl_load(self, first: int) -> str:
        """c.d = d * sc, c.m = dmin * mn."""
        return (
            f"    vec2 dm = unpackHalf2x16(W[P.plane[{first}] + (chunk / 8u) * rows + row]);\n"
            + glsl_six_bit_pair(first + 1)
            + "    c.d = dm.x * float(a);\n    c.m = dm.y * float(b);\n"
        )


@dataclass(frozen=True)
class ByteScale:
    """Sixteen groups of 16 (Q6_K): scale = d * sc, sc signed 8 bits.

    Scales: d u16[n, 1]; sc u8[n, 16] (two's complement). Planes: u16 [K/256][N] d; u16 [K/32][N] the chunk's two sc.
    """

    name: ClassVar[str] = "k8"
    has_minimum: ClassVar[bool] = False
    block: ClassVar[int] = SUPERBLOCK
    group: ClassVar[int] = 16

    def planes(self) -> tuple[Plane, ...]:
        """d, pairs of sc."""
        return (Plane(16, 1), Plane(16, 8))

    def to_planes(self, scales: Arrays) -> list[NDArray[Any]]:
        """Planes as the class says."""
        return [scales["d"], np.ascontiguousarray(scales["sc"]).view("<u2")]

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Inverse of `to_planes`."""
        return {"d": planes[0], "sc": np.ascontiguousarray(planes[1], dtype="<u2").view(np.uint8)}

    def values(self, fields: Fields) -> tuple[F32, F32 | None]:
        """d * sc."""
        s = fields.scales
        return half_to_float(s["d"]) * np.ascontiguousarray(s["sc"]).view(np.int8).astype(np.float32), None

    def glsl_load(self, first: int) -> str:
        """c.d = d * (sc of elements 0..15, sc of elements 16..31)."""
        return (
            f"    int sc = int(plane_u16({first + 1}u, chunk * rows + row));\n"
            f"    c.d = plane_half({first}u, (chunk / 8u) * rows + row)"
            " * vec2(bitfieldExtract(sc, 0, 8), bitfieldExtract(sc, 8, 8));\n"
        )


@dataclass(frozen=True)
class SixBitScale16:
    """Sixteen groups of 16 (Q3_K): scale = d * (sc - 32), sc of 6 bits.

    Scales: d u16[n, 1]; sc u8[n, 16]. Planes: u16 [K/256][N] d; u32 [K/256][3][N] the pairs (sc of elements 0..15,
    sc of elements 16..31) of the eight chunks, as `pack_six_bit_pairs` lays them.
    """

    name: ClassVar[str] = "k6x16"
    has_minimum: ClassVar[bool] = False
    block: ClassVar[int] = SUPERBLOCK
    group: ClassVar[int] = 16

    def planes(self) -> tuple[Plane, ...]:
        """d, pair words."""
        return (Plane(16, 1), Plane(32, 3))

    def to_planes(self, scales: Arrays) -> list[NDArray[Any]]:
        """Planes as the class says."""
        sc = scales["sc"]
        return [scales["d"], pack_six_bit_pairs(sc[:, 0::2], sc[:, 1::2])]

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Inverse of `to_planes`."""
        return {"d": planes[0], "sc": np.stack(cut_six_bit_pairs(planes[1]), axis=2).reshape(-1, 16)}

    def values(self, fields: Fields) -> tuple[F32, F32 | None]:
        """d * (sc - 32)."""
        s = fields.scales
        return half_to_float(s["d"]) * (s["sc"].astype(np.float32) - np.float32(32)), None

    def glsl_load(self, first: int) -> str:
        """c.d = d * (pair - 32)."""
        return (
            glsl_six_bit_pair(first + 1)
            + f"    c.d = plane_half({first}u, (chunk / 8u) * rows + row) * vec2(int(a) - 32, int(b) - 32);\n"
        )


@dataclass(frozen=True)
class SixBitScale32:
    """Eight groups of 32 (IQ4_XS): scale = d * (sc - 32), sc of 6 bits.

    Scales: d u16[n, 1]; sc u8[n, 8]. Plane: u32 [K/256][2][N]: d in the low half of word 0, above it the two high bits
    of sc[j] at bit 16 + 2j; word 1 holds the low nibble of sc[j] at bit 4j.
    """

    name: ClassVar[str] = "k6x32"
    has_minimum: ClassVar[bool] = False
    block: ClassVar[int] = SUPERBLOCK
    group: ClassVar[int] = 32

    def planes(self) -> tuple[Plane, ...]:
        """Two words a superblock."""
        return (Plane(32, 2),)

    def to_planes(self, scales: Arrays) -> list[NDArray[Any]]:
        """Words as the class says."""
        sc = scales["sc"].astype(np.uint32)
        high = np.bitwise_or.reduce((sc >> np.uint32(4)) << (_NIBBLE_SHIFTS // np.uint32(2) + np.uint32(16)), axis=1)
        low = np.bitwise_or.reduce((sc & np.uint32(15)) << _NIBBLE_SHIFTS, axis=1)
        return [np.stack([scales["d"][:, 0] | high, low], axis=1)]

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Inverse of `to_planes`."""
        d, high = cut_halves(planes[0][:, :1])
        sc = (planes[0][:, 1:] >> _NIBBLE_SHIFTS & np.uint32(15)) | (
            high.astype(np.uint32) >> _NIBBLE_SHIFTS // np.uint32(2) & np.uint32(3)
        ) << np.uint32(4)
        return {"d": d, "sc": sc.astype(np.uint8)}

    def values(self, fields: Fields) -> tuple[F32, F32 | None]:
        """d * (sc - 32)."""
        s = fields.scales
        return half_to_float(s["d"]) * (s["sc"].astype(np.float32) - np.float32(32)), None

    def glsl_load(self, first: int) -> str:
        """c.d = d * (sc - 32)."""
        return (
            f"    uint sub = P.plane[{first}] + (chunk / 8u) * 2u * rows + row;\n"
            "    uint head = W[sub];\n"
            "    uint low = (W[sub + rows] >> (4u * (chunk & 7u))) & 15u;\n"
            "    uint high = (head >> (16u + 2u * (chunk & 7u))) & 3u;\n"
            "    c.d = unpackHalf2x16(head).x * float(int(low | (high << 4)) - 32);\n"
        )


@dataclass(frozen=True)
class NibbleScaleMinimum:
    """Sixteen groups of 16 (Q2_K): scale = d * sc, minimum = dmin * mn, sc and mn of 4 bits.

    Scales: d, dmin u16[n, 1]; scmn u8[n, 16] = sc | mn << 4. Planes: u32 [K/256][N] d | dmin << 16;
    u16 [K/32][N] the chunk's two bytes.
    """

    name: ClassVar[str] = "k4min"
    has_minimum: ClassVar[bool] = True
    block: ClassVar[int] = SUPERBLOCK
    group: ClassVar[int] = 16

    def planes(self) -> tuple[Plane, ...]:
        """(d, dmin) words, pairs of bytes."""
        return (Plane(32, 1), Plane(16, 8))

    def to_planes(self, scales: Arrays) -> list[NDArray[Any]]:
        """Planes as the class says."""
        return [join_halves(scales["d"], scales["dmin"]), np.ascontiguousarray(scales["scmn"]).view("<u2")]

    def from_planes(self, planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Inverse of `to_planes`."""
        d, dmin = cut_halves(planes[0])
        return {"d": d, "dmin": dmin, "scmn": np.ascontiguousarray(planes[1], dtype="<u2").view(np.uint8)}

    def values(self, fields: Fields) -> tuple[F32, F32 | None]:
        """d * sc, dmin * mn."""
        s = fields.scales
        sc, mn = (s["scmn"] & np.uint8(15)).astype(np.float32), (s["scmn"] >> np.uint8(4)).astype(np.float32)
        return half_to_float(s["d"]) * sc, half_to_float(s["dmin"]) * mn

    def glsl_load(self, first: int) -> str:
        """c.d = d * sc, c.m = dmin * mn, both for elements 0..15 and 16..31."""
        return (
            f"    vec2 dm = unpackHalf2x16(W[P.plane[{first}] + (chunk / 8u) * rows + row]);\n"
            f"    uint s = plane_u16({first + 1}u, chunk * rows + row);\n"
            "    c.d = dm.x * vec2(s & 15u, (s >> 8) & 15u);\n"
            "    c.m = dm.y * vec2((s >> 4) & 15u, s >> 12);\n"
        )
