"""Candidate tiles of int8 operands."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from warptile import formats
from warptile.contracts import Limits, Problem
from warptile.kernels.vulkan.mul_mm_coop.int8.plan import X_BLOCKS
from warptile.kernels.vulkan.mul_mm_coop.tile import MulMmCoopTile

# (warps_n, warps_m, matrices_n, weights)
BLOCKS = (
    (1, 1, 1, "warp"), (2, 1, 1, "warp"), (4, 1, 1, "warp"), (8, 1, 1, "warp"),
    (2, 1, 2, "warp"), (4, 1, 2, "warp"),
    (2, 2, 1, "block"), (4, 2, 1, "block"), (2, 2, 2, "block"), (4, 2, 2, "block"), (8, 1, 1, "block"),
)  # fmt: skip
IT_GROUPS = (1, 2, 3, 4, 8)
"""Activation matrices a warp serves with one decode of its weights."""

K_CHUNKS = (32, 64, 128, 256)
SPLITS = (1, 2, 4, 8)


def space(problem: Problem, limits: Limits) -> Iterator[MulMmCoopTile]:
    """Products of warps and matrices a block, step, activation staging, and parts of k.

    Scales meet their sums in lanes where the device's order is known, else as a matrix of equal rows. Activations share
    a scale over the weights' own block, as llama.cpp's do (Q8_K beside K-quants, Q8_0 beside blocks of 32). Warps that
    read their own activations do so for one matrix. Nothing on a device without int8 matrices, or for a format whose
    codes are no signed bytes.
    """
    layout = formats.by_name(problem.format).layout
    if not layout.has_int8:
        return
    scales = "lanes" if limits.matrix_order else "broadcast"
    x_block = layout.block if layout.block in X_BLOCKS else X_BLOCKS[0]
    found = [f"{c.m}x{c.n}x{c.k}" for c in limits.cooperative_matrices if (c.a_type, c.c_type) == ("s8", "s32")]
    fields = itertools.product(found, BLOCKS, IT_GROUPS, K_CHUNKS, ("shared", "private"), (0, 1), SPLITS)
    for matrix, (warps_n, warps_m, along_n, weights), along_m, k_chunk, activations, prefetch, split in fields:
        if activations == "private" and (along_m > 1 or along_n > 1 or weights == "block" or not prefetch):
            continue
        tile = MulMmCoopTile(
            "int8",
            matrix,
            warps_n,
            warps_m,
            along_n,
            along_m,
            k_chunk,
            weights=weights,
            activations=activations,
            prefetch=prefetch,
            split_k=split,
            subgroup=limits.subgroup,
            scales=scales,
            x_block=x_block,
        )
        if tile.tile_m < 2 * problem.m and tile.tile_n < 2 * problem.n:
            yield tile
