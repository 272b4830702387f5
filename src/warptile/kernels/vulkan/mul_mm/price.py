"""What a tile of `vulkan.mul_mm` costs on paper."""

from __future__ import annotations

from warptile.contracts import Limits, Price, Problem
from warptile.kernels.price_model import (
    ThreadWork,
    Traffic,
    ceil_div,
    fill_of_last_wave,
    launch_seconds,
    mul_mm_shared_bytes,
    registers,
    residency,
    spill_factor,
)
from warptile.kernels.vulkan.mul_mm.tile import MulMmTile

BARRIERS_A_STEP = 2
DECODE_SLOTS = 3.0
CONVERT_SLOTS = 0.5


def price(tile: MulMmTile, problem: Problem, limits: Limits, weight_bits: float) -> Price:
    """Price of a valid tile. weight_bits: bits a weight occupies in the packed layout.

    A step stages (tile_n + tile_m) * tile_k elements, shared by all threads; each thread then reads its thread_n *
    warp_iterations_n + thread_m * warp_iterations_m rows from shared memory and does accumulators * tile_k
    multiply-adds.
    """
    grid_n, grid_m = ceil_div(problem.n, tile.tile_n), ceil_div(problem.m, tile.tile_m)
    steps = ceil_div(problem.k, tile.tile_k)
    shared = mul_mm_shared_bytes(tile.tile_n, tile.tile_m, tile.tile_k, tile.shared)
    rows = tile.thread_n * tile.warp_iterations_n
    operands = 2 * (rows + 1)
    held = registers(limits, tile.accumulators, operands)
    resident = residency(limits, tile.block_size, shared, held.count)
    fp16 = tile.shared == "fp16"
    # A software device takes a pair of fp16 apart into two accesses.
    word = 0.5 if fp16 and limits.kind == "gpu" else 1.0

    staged = (tile.tile_n + tile.tile_m) * tile.tile_k / tile.block_size
    decoded = tile.tile_n * tile.tile_k / tile.block_size
    activations = tile.tile_m * tile.tile_k / tile.block_size
    read = (rows + tile.thread_m * tile.warp_iterations_m) * tile.tile_k
    work = ThreadWork(
        fma=float(tile.accumulators * tile.tile_k * steps),
        alu=steps * (decoded * DECODE_SLOTS + (staged + read) * (CONVERT_SLOTS if fp16 else 0.0)),
        shared_words=steps * (staged + read) * word,
        global_words=steps * (decoded * weight_bits / 32 + activations / 4),
        barriers=float(steps * BARRIERS_A_STEP),
        live=tile.accumulators,
    )
    step_bytes = (tile.tile_n * weight_bits / 8 + tile.tile_m * 4) * tile.tile_k
    output_bytes = 4.0 * problem.m * problem.n
    workgroups = grid_n * grid_m
    traffic = Traffic(
        requested_bytes=workgroups * steps * step_bytes + output_bytes,
        compulsory_bytes=problem.n * problem.k * weight_bits / 8 + 4.0 * problem.m * problem.k + output_bytes,
    )
    slow_down = spill_factor(tile.accumulators, held)
    return Price(
        accumulators=tile.accumulators,
        registers=held.count,
        shared_bytes=shared,
        resident_threads=resident.threads,
        limited_by=resident.limited_by,
        barriers=BARRIERS_A_STEP,
        intensity=problem.flops / traffic.requested_bytes,
        workgroups=workgroups,
        fill=fill_of_last_wave(limits, workgroups, resident.workgroups),
        seconds=launch_seconds(limits, work, traffic, tile.block_size, workgroups, resident, slow_down),
        spills=held.spills,
        notes=_notes(tile, problem, limits, held.spills, held.budget),
    )


def _notes(tile: MulMmTile, problem: Problem, limits: Limits, spills: bool, budget: int) -> tuple[str, ...]:
    notes: list[str] = []
    if spills:
        notes.append(f"{tile.accumulators} accumulators a thread, {budget} fit: expected to spill")
    padded = ceil_div(problem.n, tile.tile_n) * tile.tile_n * ceil_div(problem.m, tile.tile_m) * tile.tile_m
    waste = 1 - problem.n * problem.m / padded
    if waste >= 0.1:
        notes.append(f"{waste:.0%} of the tile area lies outside y")
    if limits.kind == "software":
        notes.append("shared memory is ordinary memory here and each barrier splits the shader")
    elif not limits.fp32_tflops:
        notes.append("the device's rates are not known: seconds keep the order only")
    return tuple(notes)
