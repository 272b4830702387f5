"""What a tile of `triton.gemv_trits` costs on paper."""

from __future__ import annotations

from warptile import formats
from warptile.contracts import Limits, Price, Problem
from warptile.kernels.price_model import Registers, ceil_div, fill_of_last_wave, residency
from warptile.kernels.triton import common
from warptile.kernels.triton.gemv_trits import rules
from warptile.kernels.triton.gemv_trits.tile import GemvTritsTile

# Instructions a weight in the loop, with what waits for it, a task of staging a block's words for one lane of four, and
# outside of both; counted in what Triton 3.6 compiles for sm_90.
SLOTS = 2.4
STAGED_SLOTS = 300
OUTSIDE_SLOTS = 350
LANES = 4
# Share of issue slots used with this many warps a scheduler or more, and fewer in proportion to the root.
ISSUED = 0.86
WARPS_A_SCHEDULER = 4
SCHEDULERS = 4
LAUNCH_SECONDS = 1.9e-6
SPLIT_SECONDS = 0.6e-6
DEPENDENT_SECONDS = 0.6e-6
# A dependent launch whose programs find room beside those of the launch ahead takes memory's time from them.
CROWDED_SECONDS = 2.5e-6
# What waiting for each other costs a program's warps, for each four of them.
TOGETHER = 0.053
OVERLAP = 2.5
TIE = 1e-6


def price(tile: GemvTritsTile, problem: Problem, limits: Limits) -> Price:
    """Memory m and instructions c hide each other in part: (m^p + c^p)^(1/p), p = 2.5, plus what a launch costs."""
    threads = tile.warps * limits.subgroup
    needed = rules.registers_of(tile)
    most = min(tile.registers or 255, limits.max_registers_per_thread or 255)
    held = Registers(min(needed, most), needed > most + most // 8, most)
    shared = rules.shared_bytes(tile, problem)
    resident = residency(limits, threads, shared, tile.registers or max(held.count, 128))
    units = limits.units or 1
    programs = ceil_div(problem.n, 16 * tile.row_warps) * ceil_div(problem.m, tile.tile_m) * tile.split_k
    together = max(1, min(resident.workgroups, ceil_div(programs, units)))
    busy = programs / units / ceil_div(programs, units) if programs < 8 * units else 1.0
    issued = ISSUED * min(1.0, tile.warps * together / SCHEDULERS / WARPS_A_SCHEDULER) ** 0.5
    part = rules.stretches(tile, problem) * rules.stretch(tile) * rules.STEP
    loop = SLOTS * 16 * tile.row_warps * part / threads
    # Warps stage a block for 8 lanes of four at once, and a program's warps at the same time.
    staged = STAGED_SLOTS * tile.tile_m * ceil_div(rules.staged_steps(tile, problem) * LANES, threads)
    clock = limits.fp32_tflops * 1e12 / 2 / (units * SCHEDULERS * limits.subgroup) if limits.fp32_tflops else 1e9
    compute = programs * tile.warps * (loop + staged + OUTSIDE_SLOTS) / (units * SCHEDULERS * issued * clock) / busy
    weight_bytes = problem.n * problem.k * formats.by_name(problem.format).bits_per_weight / 8
    x_bytes = problem.m * problem.k * common.DTYPE_BYTES[problem.x_dtype]
    sums_bytes = 8.0 * programs * 32 * tile.row_warps if tile.split_k > 1 else 0.0
    from_cache = ceil_div(problem.n, 16 * tile.row_warps) * x_bytes / 2
    memory = (weight_bytes + from_cache + sums_bytes) / (limits.read_gb_per_s * 1e9 or 1e11)
    fixed = LAUNCH_SECONDS + (SPLIT_SECONDS if tile.split_k > 1 else 0.0)
    if tile.pdl:
        fixed += CROWDED_SECONDS if resident.workgroups * units >= programs + units else -DEPENDENT_SECONDS
    waiting = 1 + TOGETHER * (tile.warps / 4 - 1)
    # Of tiles that are otherwise equal, the one that is farther from what a thread may hold.
    fixed *= 1 + needed * TIE
    if tile.ahead == 1:
        memory += compute / 4
    return Price(
        accumulators=4 * tile.steps,
        registers=held.count,
        shared_bytes=shared,
        resident_threads=resident.threads,
        limited_by=resident.limited_by,
        barriers=0,
        intensity=problem.flops / (weight_bytes + x_bytes),
        workgroups=programs,
        fill=fill_of_last_wave(limits, programs, resident.workgroups),
        seconds=(memory**OVERLAP + compute**OVERLAP) ** (1 / OVERLAP) * waiting * (1.5 if held.spills else 1.0) + fixed,
        spills=held.spills,
    )
