"""What a tile of `vulkan.mul_mat_vecq` costs on paper.

Constants are issue slots of one fp32 multiply-add. A row's chunk of 32: its codes are masked and shifted (UNPACK_SLOTS a
word of four), its scales made (SCALE_SLOTS a group), eight dot products of half rate an x row, and the whole-number
sums converted at a quarter of the rate.
"""

from __future__ import annotations

import math

from warptile import formats
from warptile.contracts import Limits, Price, Problem
from warptile.kernels.price_model import (
    ThreadWork,
    Traffic,
    fill_of_last_wave,
    launch_seconds,
    registers,
    residency,
    spill_factor,
)
from warptile.kernels.vulkan.mul_mat_vecq.tile import CHUNK, MulMatVecqTile

UNPACK_SLOTS = 1.5
SCALE_SLOTS = 16.0
DOT_SLOTS = {"int_dot": 2.0, "plain": 12.0}
SUM_SLOTS = 8.0
QUANTIZE_SLOTS = 200.0
LAUNCH_SECONDS = 2e-6


def price(tile: MulMatVecqTile, problem: Problem, limits: Limits) -> Price:
    """Price of a valid tile: steps of `chunks` chunks of thread_n rows a lane, one pass of `columns` rows of x."""
    found = formats.by_name(problem.format)
    weight_bytes = found.block_bytes / found.block_size
    all_chunks = problem.k // CHUNK
    grid = tile.grid(problem.n, problem.m)
    workgroups = math.prod(grid)
    threads = tile.workgroup
    shared_bytes = tile.shared_bytes(problem.k, limits.subgroup)
    ahead = tile.chunks * tile.thread_n * math.ceil(weight_bytes * CHUNK / 4) * (1 + tile.prefetch)
    held = registers(limits, tile.accumulators, ahead + 10 * tile.columns + 8)
    resident = residency(limits, threads, shared_bytes, held.count)

    lane_chunks = tile.steps(problem.k) * tile.chunks
    row_chunks = lane_chunks * tile.thread_n
    groups = found.layout.groups_per_chunk
    partials = tile.partials(limits.subgroup)
    staged = tile.columns * all_chunks / threads if tile.staging == "shared" else 0.0
    x_words = 10.0 * lane_chunks * tile.columns
    work = ThreadWork(
        fma=row_chunks * tile.columns * (8 * DOT_SLOTS[tile.dot] + groups * SUM_SLOTS),
        alu=row_chunks * (8 * UNPACK_SLOTS + groups * SCALE_SLOTS) + staged * QUANTIZE_SLOTS,
        shared_words=(x_words / 4 if tile.staging == "shared" else 0.0) + 10.0 * staged + tile.accumulators,
        global_words=row_chunks * CHUNK * weight_bytes / 4 / tile.load_n + 8.0 * staged,
        uniform_words=x_words / 4 if tile.staging == "scratch" else 0.0,
        barriers=float((tile.staging == "shared") + (partials > 1)),
        live=tile.accumulators,
    )
    x_bytes = tile.columns * problem.k * (4.0 if tile.staging == "shared" else 1.5)
    output = 4.0 * problem.m * problem.n
    traffic = Traffic(
        requested_bytes=workgroups * (tile.lanes_n * tile.thread_n * problem.k * weight_bytes + x_bytes) + output,
        compulsory_bytes=problem.n * problem.k * weight_bytes + 4.0 * problem.m * problem.k + output,
    )
    seconds = launch_seconds(
        limits, work, traffic, threads, workgroups, resident, spill_factor(tile.accumulators, held)
    )
    if tile.staging == "scratch":
        seconds += LAUNCH_SECONDS
    waste = 1 - problem.n * problem.m / (workgroups * tile.lanes_n * tile.thread_n * tile.columns)
    idle = max(0, limits.units - workgroups)
    notes = [f"{workgroups} workgroups leave {idle} of {limits.units} units idle"] if idle else []
    if waste >= 0.1:
        notes.append(f"{waste:.0%} of the tile area lies outside y")
    return Price(
        accumulators=tile.accumulators,
        registers=held.count,
        shared_bytes=shared_bytes,
        resident_threads=resident.threads,
        limited_by=resident.limited_by,
        barriers=0,
        intensity=problem.flops / traffic.requested_bytes,
        workgroups=workgroups,
        fill=fill_of_last_wave(limits, workgroups, resident.workgroups),
        seconds=seconds,
        spills=held.spills,
        notes=tuple(notes),
    )
