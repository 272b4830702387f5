"""What a tile of `vulkan.mul_mat_vecq` costs on paper.

Constants are issue slots of one fp32 multiply-add. A row's chunk of 32: its codes are masked and shifted (UNPACK_SLOTS
a word of four), its scales made (SCALE_SLOTS a group), eight dot products of half rate an x row, and the whole-number
sums converted at a quarter of the rate. Reading and computing add up: what a workgroup reads first comes before
what it computes first. Fewer than 128 neighbouring bytes a load and idle units lower the rate of reading (LINE_BYTES,
BUSY_UNITS). Spearman of price and time is then 0.83 on 105 tiles on an H200 (Q4_K, n 4096, k 14336, m 1).
"""

from __future__ import annotations

import dataclasses
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
LINE_BYTES = 128
BUSY_UNITS = 0.6
"""Share of a device's units that reads as fast as all of them."""


def price(tile: MulMatVecqTile, problem: Problem, limits: Limits) -> Price:
    """Price of a valid tile: steps of `chunks` chunks of thread_n rows a lane, one pass of `columns` rows of x."""
    found = formats.by_name(problem.format)
    weight_bytes = found.block_bytes / found.block_size
    all_chunks = problem.k // CHUNK
    grid = tile.grid(problem.n, problem.m)
    workgroups = math.prod(grid)
    threads = tile.workgroup
    shared_bytes = tile.shared_bytes(problem.k, limits.subgroup)
    words = math.ceil(weight_bytes * CHUNK / 4) + 1
    ahead = tile.chunks * tile.thread_n * words
    held = registers(_for_workgroup(limits, threads), tile.accumulators, ahead, 12)
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
    computing = dataclasses.replace(limits, read_gb_per_s=0.0)
    slow_down = spill_factor(max(tile.accumulators, ahead), held)
    seconds = launch_seconds(computing, work, traffic, threads, workgroups, resident, slow_down)
    if limits.read_gb_per_s:
        line = min(1.0, 4.0 * tile.load_n * tile.lanes_n / LINE_BYTES)
        busy = min(1.0, workgroups / limits.units / BUSY_UNITS) if limits.units else 1.0
        seconds += traffic.compulsory_bytes / (limits.read_gb_per_s * 1e9) / busy / line**0.5
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


def _for_workgroup(limits: Limits, threads: int) -> Limits:
    """The limits with the most registers a thread at which a workgroup of `threads` still fits on a unit."""
    fitting = limits.registers_per_unit // threads // 8 * 8
    most = limits.max_registers_per_thread
    if not fitting or not most or limits.register_bands:
        return limits
    return dataclasses.replace(limits, max_registers_per_thread=min(most, fitting))
