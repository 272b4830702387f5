"""Candidate tiles of `vulkan.mul_mmq`: warp tiles as `mul_mm`'s, with K-steps, dots, staging and loaders."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from warptile import formats
from warptile.contracts import Limits, Problem
from warptile.kernels.vulkan.mul_mm.space import squarest_warp
from warptile.kernels.vulkan.mul_mmq import trit_loader
from warptile.kernels.vulkan.mul_mmq.tile import STAGED, MulMmqTile
from warptile.kernels.vulkan.warp_tile import CHUNK
from warptile.layouts.trits import TritPlane

TILE_N = (32, 64, 128, 256)
TILE_M = (8, 16, 32, 64, 128)
WARPS = (1, 2, 4, 8, 16, 32)
THREADS = (32, 512)
ACCUMULATORS = (8, 128)
THREAD_SHAPES = ((2, 1), (2, 2), (4, 2), (4, 4))
WARP_ITERATIONS_N = (1, 2)
BK_STEPS = (1, 2, 4)


def space(problem: Problem, limits: Limits) -> Iterator[MulMmqTile]:
    """Products of these values whose warps tile the block, sides cut to the problem's as `mul_mm`'s are.

    accumulators = tile_n * tile_m / block_size stays within ACCUMULATORS, block_size within THREADS. Dots are integer
    dots where the device accelerates them, else both kinds are tried. Base-3 formats also come with their block
    loaders, whose K-steps are whole blocks. Tiles may break a rule.
    """
    sides_n = [n for n in TILE_N if n < 2 * problem.n] or [TILE_N[0]]
    least_m = min(problem.m // 8, 32)
    sides_m = [m for m in TILE_M if least_m < m < 2 * problem.m] or [TILE_M[0]]
    stages = list(_stages(problem, limits))
    for subgroup, warps, tile_n, tile_m in product(limits.subgroup_sizes, WARPS, sides_n, sides_m):
        block = subgroup * warps
        sums = tile_n * tile_m // block
        if not THREADS[0] <= block <= THREADS[1] or not ACCUMULATORS[0] <= sums <= ACCUMULATORS[1]:
            continue
        warp_n, warp_m = squarest_warp(tile_n, tile_m, warps)
        for (thread_n, thread_m), iterations in product(THREAD_SHAPES, WARP_ITERATIONS_N):
            if sums % (thread_n * thread_m * iterations):
                continue
            for bk_step, dot, staged, scales, loader in stages:
                yield MulMmqTile(
                    block, tile_n, tile_m, CHUNK, warp_n, warp_m, iterations, thread_n, thread_m, 1, subgroup,
                    bk_step, dot, staged, scales, loader,
                )  # fmt: skip


def _stages(problem: Problem, limits: Limits) -> Iterator[tuple[int, str, str, str, str]]:
    """(bk_step, dot, staged, scales, loader); fp16 scales alone, but where a device has shared memory to spare."""
    layout = formats.by_name(problem.format).layout
    dots = ["int_dot"] if limits.has("int_dot") else []
    if not limits.has("int_dot_accelerated"):
        dots.append("plain")
    for dot in dots:
        for bk_step, staged in product(BK_STEPS, STAGED):
            yield bk_step, dot, staged, "fp16", "chunk"
        if isinstance(layout.codes, TritPlane):
            yield trit_loader.block_chunks(layout.codes), dot, "int8", "fp16", "uniform"
