"""What a tile of `triton.gemv_trits` costs on paper."""

from __future__ import annotations

from warptile import formats
from warptile.contracts import Limits, Price, Problem
from warptile.kernels.price_model import Registers, ceil_div, fill_of_last_wave, residency
from warptile.kernels.triton import common
from warptile.kernels.triton.gemv_trits import rules
from warptile.kernels.triton.gemv_trits.tile import GemvTritsTile

# Instructions a weight in the loop and a pair of activations staged, counted in what Triton 3.6 compiles for sm_90.
SLOTS, STAGED_SLOTS = 1.6, 20
OUTSIDE_SLOTS = 500
ISSUED = 0.6
WARPS_A_SCHEDULER = 4
SCHEDULERS = 4
LAUNCH_SECONDS = 2.6e-6
SPLIT_SECONDS = 0.8e-6
DEPENDENT_SECONDS = 1e-6
TIE = 1e-6


def price(tile: GemvTritsTile, problem: Problem, limits: Limits) -> Price:
    """Memory m and instructions c hide each other in part: (m^3 + c^3)^(1/3), plus what a launch costs in itself."""
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
    staged = STAGED_SLOTS * tile.tile_m * part / 2 / threads
    clock = limits.fp32_tflops * 1e12 / 2 / (units * SCHEDULERS * limits.subgroup) if limits.fp32_tflops else 1e9
    compute = programs * tile.warps * (loop + staged + OUTSIDE_SLOTS) / (units * SCHEDULERS * issued * clock) / busy
    weight_bytes = problem.n * problem.k * formats.by_name(problem.format).bits_per_weight / 8
    x_bytes = problem.m * problem.k * common.DTYPE_BYTES[problem.x_dtype]
    sums_bytes = 8.0 * programs * 32 * tile.row_warps if tile.split_k > 1 else 0.0
    from_cache = ceil_div(problem.n, 16 * tile.row_warps) * x_bytes / 2
    memory = (weight_bytes + from_cache + sums_bytes) / (limits.read_gb_per_s * 1e9 or 1e11)
    fixed = LAUNCH_SECONDS + (SPLIT_SECONDS if tile.split_k > 1 else 0.0) - DEPENDENT_SECONDS * tile.pdl
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
        seconds=(memory**3 + compute**3) ** (1 / 3) * (1.5 if held.spills else 1.0) + fixed,
        spills=held.spills,
    )
