"""Candidate tiles of `vulkan.mul_mm_coop`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from warptile.contracts import Limits, Problem
from warptile.kernels.vulkan.mul_mm_coop.int8 import space as int8_tiles
from warptile.kernels.vulkan.mul_mm_coop.tile import CHUNK, MulMmCoopTile

BLOCKS = ((1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (4, 2), (4, 4), (8, 2))
WARP_TILES = ((1, 1), (2, 2), (2, 4), (4, 4), (2, 8))
K_CHUNKS = (32, 64, 128)
SPLITS = (1, 2, 4, 8)
# (where weights are decoded, how, prefetch)
DECODED = (
    ("block", "fp16", 1),
    *(("registers", "fp16", prefetch) for prefetch in (1, 2, 4)),
)


def matrices(limits: Limits, a_type: str, c_type: str) -> list[str]:
    """The device's matrices of these types as MxNxK, in its order."""
    return [f"{c.m}x{c.n}x{c.k}" for c in limits.cooperative_matrices if (c.a_type, c.c_type) == (a_type, c_type)]


def space(problem: Problem, limits: Limits) -> Iterator[MulMmCoopTile]:
    """Products of warps a block, matrices a warp, step, place of decoding, stages and parts of k.

    No fp16 tile on a device without fp16 matrices of fp32 sums; no weights in registers where their order is not known.
    """
    found = matrices(limits, "fp16", "fp32")
    fields = itertools.product(found, BLOCKS, WARP_TILES, K_CHUNKS, DECODED, (1, 2), SPLITS)
    for matrix, (warps_n, warps_m), (along_n, along_m), k_chunk, (weights, decode, prefetch), buffers, split in fields:
        if weights == "registers" and (not limits.matrix_order or k_chunk // CHUNK % prefetch):
            continue
        tile = MulMmCoopTile(
            "fp16",
            matrix,
            warps_n,
            warps_m,
            along_n,
            along_m,
            k_chunk,
            weights=weights,
            decode=decode,
            buffers=buffers,
            prefetch=prefetch,
            split_k=split,
            subgroup=limits.subgroup,
        )
        if tile.tile_m < 2 * problem.m and tile.tile_n < 2 * problem.n:
            yield tile
    yield from int8_tiles.space(problem, limits)
