"""Scale planes of the quad arrangement: what a step of a row needs lies together, found by shifts alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.contracts.errors import UnusableInput
from warptile.layouts.scales import Scales, cut_halves, join_halves
from warptile.layouts.small_scales import OddScale
from warptile.layouts.triton.plane import QuadPlane

Arrays = Mapping[str, NDArray[Any]]
HALF = 128


@dataclass(frozen=True)
class ScalePlanes:
    """A scale kind's planes.

    kind: what the device decoder calls it; groups: scales a step has (0: fewer than one); factor: power of two that the
    decoder multiplies scales by, where the kind has one.

    to_planes: arrays [blocks, per block] and the number of rows to elements [rows, K/span, per]; from_planes inverts.
    """

    kind: str
    groups: int
    planes: tuple[QuadPlane, ...]
    to_planes: Callable[[Arrays, int], list[NDArray[Any]]]
    from_planes: Callable[[Sequence[NDArray[Any]]], dict[str, NDArray[Any]]]
    factor: float = 1.0


def scale_planes(scales: Scales, step: int) -> ScalePlanes:
    """The planes of a scale kind for steps of `step` elements. Raises UnusableInput for an unknown kind."""
    if isinstance(scales, OddScale):
        return _odd(scales, step)
    try:
        build = _KINDS[scales.name]
    except KeyError:
        raise UnusableInput(f"scale kind {scales.name!r} has no quad arrangement") from None
    return build(scales, step)


def _rows(array: NDArray[Any], rows: int, per: int) -> NDArray[Any]:
    return np.ascontiguousarray(array).reshape(rows, -1, per)


def _flat(array: NDArray[Any], per_block: int) -> NDArray[Any]:
    return np.ascontiguousarray(array).reshape(-1, per_block)


def _plain(kind: str, field: str, bits: int) -> Callable[[Scales, int], ScalePlanes]:
    """One number a block as the file has it: `per` of them a step, or one for several steps."""

    def build(scales: Scales, step: int) -> ScalePlanes:
        span = max(step, scales.block)
        per = span // scales.block

        def to_planes(arrays: Arrays, rows: int) -> list[NDArray[Any]]:
            return [_rows(arrays[field], rows, per)]

        def from_planes(planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
            return {field: _flat(planes[0], 1)}

        return ScalePlanes(kind, step // scales.block, (QuadPlane(bits, span, per),), to_planes, from_planes)

    return build


def _half_minimum(scales: Scales, step: int) -> ScalePlanes:
    """d | m << 16 a block."""

    def to_planes(arrays: Arrays, rows: int) -> list[NDArray[Any]]:
        return [_rows(join_halves(arrays["d"], arrays["m"]), rows, step // scales.block)]

    def from_planes(planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        d, m = cut_halves(_flat(planes[0], 1))
        return {"d": d, "m": m}

    plane = QuadPlane(32, step, step // scales.block)
    return ScalePlanes("halfmin", step // scales.block, (plane,), to_planes, from_planes)


def _nibbles(values: NDArray[Any], bits: int, dtype: str) -> NDArray[Any]:
    """u8[..., c] numbers of `bits` bits as one word each, number j at bit bits * j."""
    shifts = (np.arange(values.shape[-1]) * bits).astype(dtype)
    return np.asarray(np.bitwise_or.reduce(values.astype(dtype) << shifts, axis=-1))


def _cut(words: NDArray[Any], bits: int, count: int) -> NDArray[np.uint8]:
    """Inverse of `_nibbles`: [...] to u8[..., count]."""
    shifts = (np.arange(count) * bits).astype(words.dtype)
    cut: NDArray[np.uint8] = (words[..., None] >> shifts & words.dtype.type((1 << bits) - 1)).astype(np.uint8)
    return cut


def _six_bit_minimum(scales: Scales, step: int) -> ScalePlanes:
    """Four words a superblock: d | dmin << 16; for each half of it (four groups) the low nibbles of sc, then of mn; the
    high pairs of bits, byte by byte: sc of the first half, of the second, mn of the first, of the second."""

    def to_planes(arrays: Arrays, rows: int) -> list[NDArray[Any]]:
        sc, mn = arrays["sc"].reshape(-1, 2, 4), arrays["mn"].reshape(-1, 2, 4)
        low = _nibbles(np.concatenate([sc, mn], axis=2) & np.uint8(15), 4, "<u4")
        high = _nibbles(np.concatenate([sc, mn], axis=1).reshape(-1, 16) >> np.uint8(4), 2, "<u4")
        both = join_halves(arrays["d"], arrays["dmin"])
        return [_rows(np.concatenate([_flat(both, 1), low, _flat(high, 1)], axis=1), rows, 4)]

    def from_planes(planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        words = _flat(planes[0], 4)
        d, dmin = cut_halves(_flat(words[:, :1], 1))
        low, high = _cut(words[:, 1:3], 4, 8), _cut(words[:, 3], 2, 16).reshape(-1, 4, 4) << np.uint8(4)
        sc, mn = low[..., :4] | high[:, :2], low[..., 4:] | high[:, 2:]
        return {"d": d, "dmin": dmin, "sc": _flat(sc, 8), "mn": _flat(mn, 8)}

    return ScalePlanes("k6min", 4, (QuadPlane(32, scales.block, 4),), to_planes, from_planes)


def _six_bit(kind: str, groups: int, bits: int) -> Callable[[Scales, int], ScalePlanes]:
    """d a superblock; for each half of it one word of low nibbles of sc and one, half as wide, of high pairs of
    bits."""

    def build(scales: Scales, step: int) -> ScalePlanes:
        def to_planes(arrays: Arrays, rows: int) -> list[NDArray[Any]]:
            sc = arrays["sc"].reshape(-1, groups)
            low = _nibbles(sc & np.uint8(15), 4, f"<u{bits // 8}")
            high = _nibbles(sc >> np.uint8(4), 2, f"<u{bits // 16}")
            return [_rows(arrays["d"], rows, 1), _rows(low, rows, 1), _rows(high, rows, 1)]

        def from_planes(planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
            sc = _cut(planes[1], 4, groups) | _cut(planes[2], 2, groups) << np.uint8(4)
            return {"d": _flat(planes[0], 1), "sc": _flat(sc, 2 * groups)}

        planes = (QuadPlane(16, scales.block, 1), QuadPlane(bits, HALF, 1), QuadPlane(bits // 2, HALF, 1))
        return ScalePlanes(kind, groups, planes, to_planes, from_planes)

    return build


def _bytes(scales: Scales, step: int) -> ScalePlanes:
    """d a superblock; eight signed bytes for each half of it."""

    def to_planes(arrays: Arrays, rows: int) -> list[NDArray[Any]]:
        return [_rows(arrays["d"], rows, 1), _rows(arrays["sc"], rows, 8)]

    def from_planes(planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        return {"d": _flat(planes[0], 1), "sc": _flat(planes[1], 16)}

    planes = (QuadPlane(16, scales.block, 1), QuadPlane(8, HALF, 8))
    return ScalePlanes("k8", 8, planes, to_planes, from_planes)


def _nibble_minimum(scales: Scales, step: int) -> ScalePlanes:
    """d | dmin << 16 a superblock; two words for each half of it: four nibbles of sc, then the four of mn."""

    def to_planes(arrays: Arrays, rows: int) -> list[NDArray[Any]]:
        scmn = arrays["scmn"].reshape(-1, 4)
        both = np.concatenate([scmn & np.uint8(15), scmn >> np.uint8(4)], axis=1)
        return [_rows(join_halves(arrays["d"], arrays["dmin"]), rows, 1), _rows(_nibbles(both, 4, "<u4"), rows, 2)]

    def from_planes(planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        d, dmin = cut_halves(_flat(planes[0], 1))
        both = _cut(planes[1], 4, 8)
        return {"d": d, "dmin": dmin, "scmn": _flat(both[..., :4] | both[..., 4:] << np.uint8(4), 16)}

    planes = (QuadPlane(32, scales.block, 1), QuadPlane(32, HALF, 2))
    return ScalePlanes("k4min", 8, planes, to_planes, from_planes)


def _odd(scales: OddScale, step: int) -> ScalePlanes:
    """d a superblock; one word of nibbles for each half of it."""
    groups = step // scales.group

    def to_planes(arrays: Arrays, rows: int) -> list[NDArray[Any]]:
        words = _nibbles(arrays["sc"].reshape(-1, groups), 4, f"<u{groups // 2}")
        return [_rows(arrays["d"], rows, 1), _rows(words, rows, 1)]

    def from_planes(planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        return {"d": _flat(planes[0], 1), "sc": _flat(_cut(planes[1], 4, groups), scales.block // scales.group)}

    planes = (QuadPlane(16, scales.block, 1), QuadPlane(4 * groups, step, 1))
    return ScalePlanes("odd", groups, planes, to_planes, from_planes, scales.factor)


def _mini_floats(scales: Scales, step: int) -> ScalePlanes:
    """A byte a group."""
    groups = step // scales.group

    def to_planes(arrays: Arrays, rows: int) -> list[NDArray[Any]]:
        return [_rows(arrays["s"], rows, groups)]

    def from_planes(planes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        return {"s": _flat(planes[0], scales.block // scales.group)}

    return ScalePlanes("e4m3", groups, (QuadPlane(8, step, groups),), to_planes, from_planes)


def _inline(scales: Scales, step: int) -> ScalePlanes:
    """No plane of its own: d lies in the upper half of the trit tail word."""
    return ScalePlanes("inline", 1, (), lambda arrays, rows: [], lambda planes: {})


_KINDS: Mapping[str, Callable[[Scales, int], ScalePlanes]] = {
    "half": _plain("half", "d", 16),
    "halfmin": _half_minimum,
    "e8m0": _plain("e8m0", "e", 8),
    "k6min": _six_bit_minimum,
    "k8": _bytes,
    "k6x16": _six_bit("k6x16", 8, 32),
    "k6x32": _six_bit("k6x32", 4, 16),
    "k4min": _nibble_minimum,
    "e4m3": _mini_floats,
    "inline": _inline,
}
