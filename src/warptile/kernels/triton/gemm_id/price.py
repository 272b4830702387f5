"""What a tile of `triton.gemm_id` costs on paper: an expectation over the sizes of groups."""

from __future__ import annotations

from warptile import formats
from warptile.contracts import Limits, Price, Problem
from warptile.kernels.price_model import ceil_div, fill_of_last_wave, registers, residency
from warptile.kernels.triton.common import arranged
from warptile.kernels.triton.gemm.price import DECODE_SLOTS, LAUNCH_SECONDS, OVERHEAD
from warptile.kernels.triton.gemm.rules import DTYPE_BYTES
from warptile.kernels.triton.gemm_id.rules import batch, shared_bytes_of
from warptile.kernels.triton.gemm_id.tile import GemmIdTile
from warptile.kernels.triton.matrix import architecture
from warptile.workloads.experts import expected_tiles

# Of one H200, from its measured tiles: what a load from memory takes, a program's way to its first load, and a step's
# barriers.
MEMORY_SECONDS = 0.8e-6
FIND_SECONDS = 1.2e-6
STEP_SECONDS = 0.1e-6
# Registers beside sums and weights where rows are gathered and scattered by pointers, as Triton 3.6 compiles for sm_90.
SORTED_OVERHEAD = 110


def price(tile: GemmIdTile, problem: Problem, limits: Limits) -> Price:
    """Roofline over the row tiles that the routing's groups make in the mean (`expected_tiles`): weights of the experts
    that have a row are read once, decoded once a row tile; a tail's matrix work counts by its own rows."""
    threads = tile.warps * limits.subgroup
    together = batch(tile, problem)
    accumulators = together * tile.tile_n * tile.tile_m // threads
    fragments = together * tile.tile_n * tile.tile_k // threads // (2 if tile.operand in ("fp16", "bf16") else 1)
    overhead = SORTED_OVERHEAD if tile.order == "sorted" else OVERHEAD
    held = registers(limits, accumulators, fragments, overhead)
    shared = shared_bytes_of(tile, problem, limits)
    resident = residency(limits, threads, shared, held.count)
    area, touched = expected_tiles(problem, tile.tile_m, tile.tail)
    tiles, _ = expected_tiles(problem, tile.tile_m)
    if tile.order == "slots":
        area = tiles = float(problem.slots)
    grid_n = ceil_div(problem.n, tile.tile_n)
    programs = max(1, round(grid_n * tiles / tile.span))
    if tile.order == "slots":
        programs = grid_n * problem.y_rows
    units = limits.units or 1
    capacity = units * max(1, resident.workgroups)
    busy = programs / (ceil_div(programs, capacity) * capacity)
    expert_bytes = problem.n * problem.k * formats.by_name(problem.format).bits_per_weight / 8
    weight_bytes = touched * expert_bytes
    x_bytes = problem.x_rows * problem.k * DTYPE_BYTES[problem.x_dtype]
    y_size = DTYPE_BYTES[problem.y_dtype]
    y_bytes = float(problem.y_rows * problem.n * y_size)
    launches = 1.0 if tile.order == "slots" else 3.0
    if problem.summed and tile.order == "sorted":
        y_bytes += 2.0 * problem.slots * problem.n * y_size
        launches += 1
    vector = limits.fp32_tflops * 1e12 or 1e12
    ratio = architecture(limits).matrix if tile.operand in ("fp16", "bf16") else architecture(limits).matrix / 2
    rows_n = grid_n * tile.tile_n
    rate = vector * ratio if tile.operand != "ieee" else vector
    matrix = 2.0 * rows_n * area * tile.tile_m * problem.k / rate
    decode = rows_n * problem.k * tiles * DECODE_SLOTS[tile.decode] / (vector / 2)
    bandwidth = limits.read_gb_per_s * 1e9 or 1e11
    memory = (weight_bytes + x_bytes + y_bytes) / bandwidth
    compute = max(matrix, decode)
    seconds = max(memory, compute / max(busy, 1e-3), _serial(tile, problem, limits, resident.workgroups, programs))
    seconds += LAUNCH_SECONDS * launches
    return Price(
        accumulators=accumulators,
        registers=held.count,
        shared_bytes=shared,
        resident_threads=resident.threads,
        limited_by=resident.limited_by,
        barriers=2,
        intensity=problem.flops / (weight_bytes + x_bytes + y_bytes),
        workgroups=programs,
        fill=fill_of_last_wave(limits, programs, resident.workgroups),
        seconds=seconds * (2.0 if held.spills else 1.0),
        spills=held.spills,
        notes=(
            f"{arranged(problem).name}, routing {problem.routing or 'uniform'}: {touched:.1f} of {problem.experts} "
            f"experts, {tiles:.1f} row tiles in the mean",
        ),
    )


def _serial(tile: GemmIdTile, problem: Problem, limits: Limits, resident: int, programs: int) -> float:
    """Seconds of the programs one after another on a unit that holds `resident` of them: each finds its rows, then at
    every step waits for memory, less where more stages are on their way, or for the unit that it shares."""
    units, held = limits.units or 1, max(1, resident)
    vector = limits.fp32_tflops * 1e12 or 1e12
    ratio = architecture(limits).matrix if tile.operand in ("fp16", "bf16") else 1.0
    weights = batch(tile, problem) * tile.tile_n * tile.tile_k
    work = 2.0 * weights * tile.tile_m / (vector * ratio) + weights * DECODE_SLOTS[tile.decode] / (vector / 2)
    waiting = MEMORY_SECONDS / (tile.stages - 1) if tile.stages > 2 else 2 * MEMORY_SECONDS
    step = max(waiting, work * units * held) + STEP_SECONDS
    steps = ceil_div(problem.k // tile.tile_k, tile.steps)
    return ceil_div(programs, units * held) * (FIND_SECONDS + tile.span * steps * step)
