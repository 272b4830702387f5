"""Candidate tuples: powers of two around those llama.cpp has."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from warptile.contracts import Limits, Problem
from warptile.kernels.vulkan.llama_cpp.tile import LlamaCppTile
from warptile.kernels.vulkan.mul_mm.space import squarest_warp

TILE_N = (16, 32, 64, 128, 256)
TILE_M = (8, 16, 32, 64, 128)
BLOCKS = (16, 32, 64, 128, 256, 512)
WARPS = (8, 16, 32, 64)
ACCUMULATORS = {"gpu": (4, 128), "software": (32, 64)}
"""Sums a thread. On lavapipe fewer than 32 were two to six times slower than the stock tuples, and 128 took twice as
long to compile as 64 for times that were hardly shorter; tuples next to a stock one of 128 are tried all the same."""

THREAD_SHAPES = {
    "mul_mm": ((2, 1), (2, 2), (4, 1), (4, 2), (4, 4), (8, 2), (8, 4)),
    "mul_mmq": ((1, 1), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4)),
}
WARP_ITERATIONS_N = (1, 2, 4)


def space(problem: Problem, limits: Limits, shader: str, operands: str, sums: str) -> Iterator[LlamaCppTile]:
    """Products of these values, warps as near to square as their block allows; tiles may break a rule.

    Sides of more than twice the problem's are left out. WARP need be no subgroup of the device, but no larger than the
    block, and not below the smallest subgroup.
    """
    fewest, most = ACCUMULATORS[limits.kind]
    least = min(limits.subgroup_sizes or (limits.subgroup,))
    sides_n = [n for n in TILE_N if n < 2 * problem.n] or [TILE_N[0]]
    sides_m = [m for m in TILE_M if m < 2 * problem.m] or [TILE_M[0]]
    for tile_n, tile_m, block, warp in product(sides_n, sides_m, BLOCKS, WARPS):
        sums_a_thread = tile_n * tile_m // block
        if warp > block or warp < least or not fewest <= sums_a_thread <= most:
            continue
        warps = block // warp
        if warps > tile_n * tile_m:
            continue
        try:
            warp_n, warp_m = squarest_warp(tile_n, tile_m, warps)
        except ValueError:
            continue
        for (thread_n, thread_m), iterations in product(THREAD_SHAPES[shader], WARP_ITERATIONS_N):
            if sums_a_thread % (thread_n * thread_m * iterations):
                continue
            yield LlamaCppTile(
                block,
                tile_n,
                tile_m,
                32,
                warp_n,
                warp_m,
                iterations,
                thread_n,
                thread_m,
                1,
                warp,
                shader,
                operands,
                sums,
            )
