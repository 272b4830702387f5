"""Seconds of a tile of `vulkan.mul_mmq` on a software device, where shared memory is memory and a lane an array
element.

Instructions a vector of lanes, fitted by non-negative least squares to 40 tiles on Mesa 22.3's llvmpipe (256-bit
vectors); they keep an order between tiles, and say nothing of a GPU.
"""

from __future__ import annotations

from warptile.contracts import Limits, Problem
from warptile.kernels.price_model import NOMINAL_SOFTWARE_INSTRUCTIONS, ceil_div
from warptile.kernels.vulkan import q8_1
from warptile.kernels.vulkan.mul_mmq.staging import INT8_WORDS, Staging
from warptile.kernels.vulkan.mul_mmq.tile import MulMmqTile

# A dot, a packed word unpacked by every thread that reads it, a word unpacked once while it is staged.
DOT = {"int_dot": 3.0, "plain": 5.4}
UNPACK_READ = 31.0
UNPACK_STAGED = 141.0
# A word stored to shared memory, one load of a weight word and of an activation word from there, a lane.
STORE_WEIGHTS = 45.0
STORE_ACTIVATIONS = 55.0
LOAD_WEIGHTS = 5.0
LOAD_ACTIVATIONS = 14.8
# A barrier's cost a vector, and what each sum that lives across it adds.
BARRIER = 2400.0
LIVE_SUM = 43.0


def seconds(tile: MulMmqTile, held: Staging, problem: Problem, limits: Limits, loading: float) -> float:
    """Instructions of all workgroups over all host threads. loading: instructions of a staged chunk's own decoding."""
    workgroups = ceil_div(problem.n, tile.tile_n) * ceil_div(problem.m, tile.tile_m)
    steps = ceil_div(problem.k, tile.step_k)
    lanes = limits.subgroup
    vectors = tile.block_size / lanes
    rows, tokens = tile.warp_iterations_n * tile.thread_n, tile.warp_iterations_m * tile.thread_m
    words = held.code_words + held.scale_words
    dots = INT8_WORDS * (tile.accumulators + (tokens if held.minimum else 0))
    unpacked = UNPACK_STAGED * tile.tile_n / lanes if tile.staged == "int8" else UNPACK_READ * rows * vectors
    chunk = (
        dots * DOT[tile.dot] * vectors
        + unpacked * INT8_WORDS
        + tile.tile_n * (STORE_WEIGHTS * words + loading / lanes)
        + tile.tile_m * STORE_ACTIVATIONS * q8_1.BLOCK_WORDS
        + tile.block_size * (rows * words * LOAD_WEIGHTS + tokens * q8_1.BLOCK_WORDS * LOAD_ACTIVATIONS)
    )
    step = tile.bk_step * chunk + 2 * vectors * (BARRIER + LIVE_SUM * tile.accumulators)
    rounds = ceil_div(workgroups, limits.units) if limits.units else workgroups
    return rounds * steps * step / NOMINAL_SOFTWARE_INSTRUCTIONS
