"""What a tile of `triton.gemm_int8` costs on paper."""

from __future__ import annotations

from dataclasses import replace

from warptile import formats
from warptile.contracts import Limits, Price, Problem
from warptile.kernels.price_model import ceil_div, fill_of_last_wave, registers, residency
from warptile.kernels.triton import waves
from warptile.kernels.triton.common import arranged
from warptile.kernels.triton.gemm_int8.blocks import blocks_of
from warptile.kernels.triton.gemm_int8.rules import DTYPE_BYTES, shared_bytes
from warptile.kernels.triton.gemm_int8.tile import GemmInt8Tile
from warptile.kernels.triton.matrix import architecture

# Instructions a weight: shift, mask, offset, and the byte's place; a sum and block: conversion and two multiply-adds.
DECODE_SLOTS = 5.0
SUM_SLOTS = 3.0
OVERHEAD = 112
LAUNCH_SECONDS = 2e-6
# As in `triton.gemm`.
SPILLED = 8.0
# Measured on an H200: what a block costs where its products are asynchronous and waited for at once.
DRAIN_SECONDS = 1.2e-6


def price(tile: GemmInt8Tile, problem: Problem, limits: Limits) -> Price:
    """Roofline of two launches: the quantizer moves x and its codes; the product takes the largest of memory, matrix
    unit, and vector time (decoding, and scaling each block's sums), over the share of units kept busy."""
    threads = tile.warps * limits.subgroup
    blocks = blocks_of(problem)
    accumulators = tile.tile_n * tile.tile_m // threads
    # A block's whole-number sums for each of its scales, their scaled values, and the weights' codes on their way.
    operands = 2 * blocks.parts * accumulators + tile.tile_n * blocks.size // threads
    held = registers(limits, accumulators, operands, OVERHEAD)
    if waves.is_amd(limits):
        flying = (tile.stages - 1) * tile.tile_m * tile.tile_k // 4 // threads
        count = accumulators + operands + OVERHEAD + flying
        spills = waves.codes_spill(limits, tile.tile_n, tile.tile_k, tile.warps, tile.stages, count, blocks.parts)
        held = replace(held, spills=spills)
    shared = shared_bytes(tile, problem)
    resident = residency(limits, threads, shared, held.count)
    grid_n, grid_m = ceil_div(problem.n, tile.tile_n), ceil_div(problem.m, tile.tile_m)
    programs = grid_n * grid_m
    units = limits.units or 1
    turns = ceil_div(programs, units * max(1, resident.workgroups))
    busy = programs / (turns * units * max(1, resident.workgroups))
    weight_bytes = problem.n * problem.k * formats.by_name(problem.format).bits_per_weight / 8
    x_bytes = problem.m * problem.k * DTYPE_BYTES[problem.x_dtype]
    code_bytes = problem.m * problem.k * (1 + 8 / blocks.size)
    y_bytes = problem.m * problem.n * DTYPE_BYTES[problem.y_dtype]
    vector = limits.fp32_tflops * 1e12 or 1e12
    padded = float(grid_n * tile.tile_n * grid_m * tile.tile_m) * problem.k
    matrix = 2 * padded * blocks.parts / (vector * architecture(limits).int8)
    slots = grid_n * tile.tile_n * problem.k * grid_m * DECODE_SLOTS + padded * blocks.parts / blocks.size * SUM_SLOTS
    bandwidth = limits.read_gb_per_s * 1e9 or 1e11
    memory = (weight_bytes + code_bytes + y_bytes) / bandwidth
    compute = max(matrix, slots / (vector / 2)) if resident.workgroups > 1 else matrix + slots / (vector / 2)
    seconds = max(memory, compute / max(busy, 1e-3)) * (SPILLED if held.spills else 1.0)
    if architecture(limits).asynchronous:
        seconds = max(seconds, DRAIN_SECONDS * problem.k / blocks.size * ceil_div(programs, units))
    return Price(
        accumulators=accumulators,
        registers=held.count,
        shared_bytes=shared,
        resident_threads=resident.threads,
        limited_by=resident.limited_by,
        barriers=2,
        intensity=problem.flops / (weight_bytes + x_bytes + 2 * code_bytes + y_bytes),
        workgroups=programs,
        fill=fill_of_last_wave(limits, programs, resident.workgroups),
        seconds=seconds + (x_bytes + code_bytes) / bandwidth + 2 * LAUNCH_SECONDS,
        spills=held.spills,
        notes=(f"{arranged(problem).name}, activations in blocks of {blocks.size}",),
    )
