"""What a tile of `triton.gemv_mma` costs on paper."""

from __future__ import annotations

from warptile import formats
from warptile.contracts import Limits, Price, Problem
from warptile.kernels.price_model import Registers, ceil_div, fill_of_last_wave, residency
from warptile.kernels.triton import common
from warptile.kernels.triton.gemv_mma import rules
from warptile.kernels.triton.gemv_mma.tile import GemvMmaTile

# Instructions a weight in the loop, counted in what Triton 3.6 compiles for sm_90 (`benchmarks/instructions.py`); of
# codebooks, where 12 are counted that wait for each other, what an H200 took.
BIT_PLANE_SLOTS = 2.3
TWO_PLANE_SLOTS = 4.1
TRIT_SLOTS = 3.1
CODEBOOK_SLOTS = 21.0
# Of a column of sums, a weight; of a warp outside the loop; of a staged word of x.
COLUMN_SLOTS = 0.08
OUTSIDE_SLOTS = 730
STAGED_SLOTS = 6
# Share of issue slots used with this many warps a scheduler or more, and fewer in proportion to the root.
ISSUED = 0.86
WARPS_A_SCHEDULER = 4
SCHEDULERS = 4
# Fixed cost of a launch: its start, x on its way, sums over warps.
LAUNCH_SECONDS = 0.9e-6
SPLIT_SECONDS = 0.6e-6
DEPENDENT_SECONDS = 1e-6
# A dependent launch whose programs find room beside those of the launch ahead takes memory's time from them.
CROWDED_SECONDS = 2.5e-6
# Passing x to a program from cache, and sums to and fro, against a byte of weights.
FROM_CACHE, SUMS = 0.43, 2.5
# What waiting for each other costs a program's warps, for each four of them.
TOGETHER = 0.053
OVERLAP = 2.5
# Loop of one step at a time over half a loop of two, but for codes of two planes, whose scales a half has of its own;
# loop of 32 rows a warp over two of 16.
SINGLE_STEPS, TWO_TILES = 1.15, 1.05
# Of what the last round of programs leaves idle, the share that the others do not make up for by going faster.
TAIL = 0.35
# Copied rows of x beyond m are the last one again: many programs then ask for the same lines.
REPEATED = 0.6
# Bringing a copied byte of bf16 rows into fp16's range, a unit.
CONVERTED_SECONDS = 2.2e-11
# Staging x of a token beyond the fourth, an element of k: it ends before the first weight is used.
STAGED_SECONDS = 6.6e-11
TIE = 1e-6


def price(tile: GemvMmaTile, problem: Problem, limits: Limits) -> Price:
    """Memory m and instructions c hide each other in part: (m^p + c^p)^(1/p), p = 2.5, plus what a launch costs.

    The constants were fitted on one H200.
    """
    threads = tile.warps * limits.subgroup
    needed = rules.registers_of(tile, problem)
    most = min(tile.registers or 255, limits.max_registers_per_thread or 255)
    held = Registers(min(needed, most), needed > most + rules.margin(problem), most)
    shared = rules.shared_bytes(tile, problem)
    # The compiler takes what it may where nothing says how many registers are enough.
    taken = tile.registers or max(held.count, 128)
    resident = residency(limits, threads, shared, taken)
    units = limits.units or 1
    programs = ceil_div(problem.n, tile.tile_n) * ceil_div(problem.m, tile.tile_m) * tile.split_k
    together = max(1, min(resident.workgroups, ceil_div(programs, units)))
    busy = programs / units / ceil_div(programs, units) if programs < 8 * units else 1.0
    issued = ISSUED * min(1.0, tile.warps * together / SCHEDULERS / WARPS_A_SCHEDULER) ** 0.5
    passes = ceil_div(problem.m, tile.tile_m)
    part = rules.stretches(tile, problem) * rules.stretch(tile) * common.arranged(problem).step
    slots = _slots(problem) + rules.columns(tile) * COLUMN_SLOTS
    staged = 0.0 if tile.direct else STAGED_SLOTS * tile.tile_m * part / 2 / threads
    if tile.steps == 1 and not common.parameters(problem)[1]:
        slots *= SINGLE_STEPS
    if tile.tile_n > 16 * tile.row_warps:
        slots *= TWO_TILES
    loop = slots * tile.tile_n * part / threads
    clock = limits.fp32_tflops * 1e12 / 2 / (units * SCHEDULERS * limits.subgroup) if limits.fp32_tflops else 1e9
    compute = programs * tile.warps * (loop + staged + OUTSIDE_SLOTS) / (units * SCHEDULERS * issued * clock) / busy
    weight_bytes = problem.n * problem.k * formats.by_name(problem.format).bits_per_weight / 8
    x_bytes = problem.m * problem.k * common.DTYPE_BYTES[problem.x_dtype]
    sums_bytes = 8.0 * SUMS * programs * tile.tile_n * rules.columns(tile) if tile.split_k > 1 else 0.0
    from_cache = ceil_div(problem.n, tile.tile_n) * x_bytes * FROM_CACHE
    memory = (weight_bytes * passes + from_cache + sums_bytes) / (limits.read_gb_per_s * 1e9 or 1e11)
    room = resident.workgroups * units >= programs + units
    fixed = LAUNCH_SECONDS + (SPLIT_SECONDS if tile.split_k > 1 else 0.0)
    if tile.pdl:
        fixed += CROWDED_SECONDS if room else -DEPENDENT_SECONDS
    if tile.direct and problem.x_dtype != "fp16":
        fixed += CONVERTED_SECONDS * ceil_div(problem.n, tile.tile_n) * x_bytes / units
    if not tile.direct:
        fixed += STAGED_SECONDS * problem.k * max(0, tile.tile_m - 4)
    # Of tiles that are otherwise equal, the one that is farther from what a thread may hold.
    fixed *= 1 + needed * TIE
    waiting = 1 + TOGETHER * (tile.warps / 4 - 1)
    if tile.direct and problem.m < tile.tile_m:
        waiting *= 1 + REPEATED * (1 - problem.m / tile.tile_m) ** 2
    rounds = programs / max(1, resident.workgroups * units)
    if rounds > 1:
        waiting *= 1 + TAIL * (ceil_div(programs, resident.workgroups * units) / rounds - 1)
    if tile.ahead == 1:
        memory += compute / 4
    return Price(
        accumulators=tile.tile_n // tile.row_warps * rules.columns(tile) // limits.subgroup,
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


def _slots(problem: Problem) -> float:
    parameters = common.parameters(problem)
    if parameters[10] == 0:
        return CODEBOOK_SLOTS
    if parameters[3]:
        return TRIT_SLOTS
    return TWO_PLANE_SLOTS if parameters[1] else BIT_PLANE_SLOTS
