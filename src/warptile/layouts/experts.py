"""Packing w[experts, n, k]: every expert packed as a weight of its own, one after another in a buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warptile.contracts import UnusableInput
from warptile.layouts.fields import U8
from warptile.layouts.packing import PackedSlice, PackedWeights, pack, slice_bytes

if TYPE_CHECKING:
    from warptile.formats import Format

GRANULE = 16


def expert_stride(format: Format, n: int, k: int, arrangement: str = "rows") -> int:
    """32-bit words from one expert to the next: those of a slice of n rows, rounded up to 16."""
    words = slice_bytes(format, n, k, arrangement) // 4
    return -(-words // GRANULE) * GRANULE


def pack_experts(
    format: Format,
    blocks: U8,
    experts: int,
    n: int,
    k: int,
    max_bytes: int | None = None,
    arrangement: str = "rows",
) -> PackedWeights:
    """Pack w[experts, n, k] from the file blocks of its rows, u8, those of fewer experts repeated in turn.

    Slices hold as many whole experts as fit max_bytes. Raises UnusableInput as `pack`, and where one expert exceeds
    max_bytes or the blocks are not those of whole experts.
    """
    each = n * format.row_bytes(k)
    if experts < 1 or blocks.size == 0 or blocks.size % each or blocks.size > experts * each:
        raise UnusableInput(
            f"{format.name} experts [{experts}, {n}, {k}] are {experts} x {each} bytes, not {blocks.size}"
        )
    given = blocks.reshape(-1, each)
    stride = expert_stride(format, n, k, arrangement)
    most = experts if max_bytes is None else max_bytes // (4 * stride)
    if most < 1:
        raise UnusableInput(f"an expert of {4 * stride} packed bytes exceeds the device's buffer limit of {max_bytes}")
    packed = [pack(format, own, n, k, None, arrangement).slices[0] for own in given]
    slices = []
    for first in range(0, experts, most):
        count = min(most, experts - first)
        words = np.zeros(count * stride, dtype="<u4")
        for place in range(count):
            own = packed[(first + place) % len(packed)].words
            words[place * stride :][: len(own)] = own
        slices.append(PackedSlice(0, n, words, packed[0].planes, first, count, stride))
    return PackedWeights(format, n, k, tuple(slices), arrangement, experts)
