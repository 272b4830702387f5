"""What a tile of `triton.gemm` costs on paper."""

from __future__ import annotations

from dataclasses import replace

from warptile import formats
from warptile.contracts import Limits, Price, Problem
from warptile.kernels.price_model import Registers, ceil_div, fill_of_last_wave, registers, residency
from warptile.kernels.triton import waves
from warptile.kernels.triton.common import arranged
from warptile.kernels.triton.gemm.rules import DTYPE_BYTES, shared_bytes
from warptile.kernels.triton.gemm.tile import GemmTile
from warptile.kernels.triton.matrix import architecture
from warptile.kernels.triton.shares import shared_evenly

# Instructions a weight: shift, mask, half a multiply-add, and the scale's share.
DECODE_SLOTS = {"half": 3.0, "plain": 7.0}
# Looking codes up in a codebook, as an H200 took it: its instructions wait for each other.
CODEBOOK_SLOTS = 14.0
LANES_A_UNIT = 128
OVERHEAD = 48
LAUNCH_SECONDS = 2e-6
DRAINED = 1.7
"""Measured on an H200, where each step ends by waiting for its matrix instructions: time over what is written below."""
# Memory of a thread's own in a K loop costs a multiple of the step: never picked while another tile is valid.
SPILLED = 8.0
# AMD's matrix instructions that Triton makes for fewer than 16 columns, over those for 16.
NARROW_INSTRUCTIONS = 4.0


def _held(tile: GemmTile, limits: Limits, accumulators: int) -> Registers:
    """Registers a thread: sums, both operands' share of a step, addresses and the decoder's."""
    operand_bytes = 2 if tile.operand in ("fp16", "bf16") else 4
    if not waves.is_amd(limits):
        fragments = tile.tile_n * tile.tile_k * operand_bytes // 4 // (tile.warps * limits.subgroup)
        held = registers(limits, accumulators, fragments, OVERHEAD)
        return replace(held, spills=held.spills or _spills(tile, limits, operand_bytes))
    shared_out = waves.Waves.of(tile.tile_n, tile.tile_m, tile.warps)
    held = registers(
        limits, accumulators, waves.fragments(limits, shared_out, tile.tile_k, operand_bytes), waves.OVERHEAD
    )
    return replace(held, spills=_spills(tile, limits, operand_bytes))


def _spills(tile: GemmTile, limits: Limits, operand_bytes: int) -> bool:
    return waves.spills(limits, tile.tile_n, tile.tile_m, tile.tile_k, tile.warps, tile.stages, operand_bytes)


def _work(tile: GemmTile, problem: Problem, tiles: int) -> tuple[int, int, int]:
    """Programs, the sums of tiles they keep for others to add, and the steps of the busiest."""
    steps = problem.k // tile.tile_k
    if tile.split_k:
        programs = tiles * tile.split_k
        return programs, programs if tile.split_k > 1 else 0, steps // tile.split_k
    shares = shared_evenly(tiles, steps, tile.programs, tile.rest)
    most = (tiles - shares.rest) // shares.programs * steps + ceil_div(shares.rest * steps, shares.sharers)
    return shares.programs, min(2, shares.rest) * shares.sharers, most


def price(tile: GemmTile, problem: Problem, limits: Limits) -> Price:
    """Roofline of one launch: the largest of memory, matrix unit and decode time, over the share of units kept busy."""
    threads = tile.warps * limits.subgroup
    accumulators = tile.tile_n * tile.tile_m // threads
    held = _held(tile, limits, accumulators)
    shared = shared_bytes(tile, problem, limits)
    resident = residency(limits, threads, shared, min(held.count, tile.registers or held.count))
    grid_n, grid_m = ceil_div(problem.n, tile.tile_n), ceil_div(problem.m, tile.tile_m)
    programs, kept, most = _work(tile, problem, grid_n * grid_m)
    units = limits.units or 1
    turns = ceil_div(programs, units * max(1, resident.workgroups))
    steps = grid_n * grid_m * (problem.k // tile.tile_k)
    # A program of a split has its share of a tile, whole or not.
    busy = (programs if tile.split_k else steps / most) / (turns * units * max(1, resident.workgroups))
    weight_bytes = problem.n * problem.k * formats.by_name(problem.format).bits_per_weight / 8
    x_bytes = problem.m * problem.k * DTYPE_BYTES[problem.x_dtype]
    y_bytes = problem.m * problem.n * DTYPE_BYTES[problem.y_dtype]
    parts = 8.0 * kept * tile.tile_n * tile.tile_m
    vector = limits.fp32_tflops * 1e12 or 1e12
    padded = 2.0 * grid_n * tile.tile_n * grid_m * tile.tile_m * problem.k
    ratio = architecture(limits).matrix if tile.operand in ("fp16", "bf16") else architecture(limits).matrix / 2
    matrix = padded / (vector * ratio) if tile.operand != "ieee" else padded / vector
    if tile.tile_m < waves.SIDE and waves.is_amd(limits):
        matrix *= NARROW_INSTRUCTIONS
    slots = DECODE_SLOTS[tile.decode] + (0.0 if arranged(problem).layout.affine else CODEBOOK_SLOTS)
    decode = grid_n * tile.tile_n * problem.k * grid_m * slots / (vector / 2)
    bandwidth = limits.read_gb_per_s * 1e9 or 1e11
    memory = (weight_bytes + x_bytes + y_bytes + parts) / bandwidth
    # A program alone on its unit does not hide one phase behind another.
    compute = max(matrix, decode) if resident.workgroups > 1 else matrix + decode
    if architecture(limits).asynchronous:
        compute *= DRAINED
    working = compute / max(busy, 1e-3)
    # Where a step ends by waiting for its matrix instructions, nothing is asked of memory meanwhile.
    seconds = memory + working if architecture(limits).asynchronous else max(memory, working)
    seconds += LAUNCH_SECONDS * (3.0 if kept else 1.0)
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
        seconds=seconds * (SPILLED if held.spills else 1.0),
        spills=held.spills,
        notes=(f"{arranged(problem).name}, {most} steps a program",),
    )
