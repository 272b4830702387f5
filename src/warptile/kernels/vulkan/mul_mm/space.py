"""Candidate tiles of `vulkan.mul_mm`: powers of two around what llama.cpp and published tunings use."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from warptile.contracts import Limits, Problem
from warptile.kernels.vulkan.mul_mm.tile import MulMmTile

TILE_N = (16, 32, 64, 128, 256)
TILE_M = (8, 16, 32, 64, 128)
TILE_K = (32, 64)
WARPS = (1, 2, 4, 8, 16, 32)
THREADS = (32, 512)
ACCUMULATORS = (4, 128)
THREAD_SHAPES = ((2, 2), (4, 2), (4, 4), (8, 4), (4, 8))
WARP_ITERATIONS_N = (1, 2)


def space(problem: Problem, limits: Limits) -> Iterator[MulMmTile]:
    """Products of these values whose warps tile the block; sides twice beyond the problem's are left out.

    accumulators = tile_n * tile_m / block_size stays within ACCUMULATORS, block_size within THREADS; a warp is as
    near to square as its block allows, or one factor of two flatter along n. Tiles may break a rule.
    """
    shared_types = ("fp16", "fp32") if limits.has("fp16") else ("fp32",)
    sides_n = [n for n in TILE_N if n < 2 * problem.n or n == TILE_N[0]]
    sides_m = [m for m in TILE_M if m < 2 * problem.m or m == TILE_M[0]]
    for subgroup, warps, tile_n, tile_m in product(limits.subgroup_sizes, WARPS, sides_n, sides_m):
        block = subgroup * warps
        sums = tile_n * tile_m // block
        if not THREADS[0] <= block <= THREADS[1] or not ACCUMULATORS[0] <= sums <= ACCUMULATORS[1]:
            continue
        for warp_n, warp_m in _warp_shapes(tile_n, tile_m, warps):
            for (thread_n, thread_m), iterations in product(THREAD_SHAPES, WARP_ITERATIONS_N):
                if sums % (thread_n * thread_m * iterations):
                    continue
                for tile_k, shared in product(TILE_K, shared_types):
                    yield MulMmTile(
                        block, tile_n, tile_m, tile_k, warp_n, warp_m, iterations, thread_n, thread_m, 1, subgroup, shared
                    )


def _warp_shapes(tile_n: int, tile_m: int, warps: int) -> list[tuple[int, int]]:
    shapes = [
        (tile_n // across, tile_m * across // warps)
        for across in (1, 2, 4, 8, 16, 32)
        if warps % across == 0 and tile_n % across == 0 and tile_m % (warps // across) == 0
    ]
    shapes.sort(key=lambda shape: (max(shape) / min(shape), shape))
    return shapes[:2]
