"""Candidate tiles of `vulkan.mul_mm`: powers of two around what llama.cpp and published tunings use."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from warptile.contracts import Limits, Problem
from warptile.kernels.vulkan.mul_mm.tile import MulMmTile

TILE_N = (32, 64, 128, 256)
TILE_M = (8, 16, 32, 64, 128)
STAGES = ((32, "fp16"), (64, "fp16"), (32, "fp32"))
WARPS = (1, 2, 4, 8, 16, 32)
THREADS = (32, 512)
ACCUMULATORS = (8, 128)
THREAD_SHAPES = ((2, 2), (4, 2), (4, 4))
WARP_ITERATIONS_N = (1, 2)


def space(problem: Problem, limits: Limits) -> Iterator[MulMmTile]:
    """Products of these values whose warps tile the block; sides twice beyond the problem's are left out,
    and along m those of an eighth of it or less (of 32 or less for a large m).

    accumulators = tile_n * tile_m / block_size stays within ACCUMULATORS, block_size within THREADS; a warp is as
    near to square as its block allows. Tiles may break a rule.
    """
    stages = [(tile_k, shared) for tile_k, shared in STAGES if shared == "fp32" or limits.has("fp16")]
    sides_n = [n for n in TILE_N if n < 2 * problem.n] or [TILE_N[0]]
    least_m = min(problem.m // 8, 32)
    sides_m = [m for m in TILE_M if least_m < m < 2 * problem.m] or [TILE_M[0]]
    for subgroup, warps, tile_n, tile_m in product(limits.subgroup_sizes, WARPS, sides_n, sides_m):
        block = subgroup * warps
        sums = tile_n * tile_m // block
        if not THREADS[0] <= block <= THREADS[1] or not ACCUMULATORS[0] <= sums <= ACCUMULATORS[1]:
            continue
        warp_n, warp_m = squarest_warp(tile_n, tile_m, warps)
        for (thread_n, thread_m), iterations in product(THREAD_SHAPES, WARP_ITERATIONS_N):
            if sums % (thread_n * thread_m * iterations):
                continue
            for tile_k, shared in stages:
                yield MulMmTile(
                    block, tile_n, tile_m, tile_k, warp_n, warp_m, iterations, thread_n, thread_m, 1, subgroup, shared
                )


def squarest_warp(tile_n: int, tile_m: int, warps: int) -> tuple[int, int]:
    """(warp_n, warp_m) of `warps` equal warps that tile the block, as near to square as can be."""
    shapes = [
        (tile_n // across, tile_m * across // warps)
        for across in (1, 2, 4, 8, 16, 32)
        if warps % across == 0 and tile_n % across == 0 and tile_m % (warps // across) == 0
    ]
    return min(shapes, key=lambda shape: (max(shape) / min(shape), shape))
