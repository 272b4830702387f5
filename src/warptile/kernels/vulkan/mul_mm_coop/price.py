"""What a tile of `vulkan.mul_mm_coop` costs on paper.

Constants are issue slots of one fp32 multiply-add. MATRIX_SPEEDUP: an H200's matrix units ran 643 TFLOP/s of fp16
from registers, its vector units are rated 67; a software device has none and loads matrices word by word.
DECODE_SLOTS: a fused multiply-add of two halves and its share of unpacking; in fp32 twice that, in subnormal numbers
less. Two are fitted with the others held, to the least median deviation of log(price / time) on 565 tiles at m = 128,
512 and 2048 there (Q4_K, n 4096, k 14336), and rounded: MATRIX_WORD_SLOTS, a word of an operand matrix read from
shared memory, and SUM_SLOTS, what one sum costs once a workgroup (cleared, stored, and its share of the loop's first
loads waited for), which is what more parts of k cost. Spearman of price and time is then 0.63, 0.75 and 0.72; with
sums for nothing it is 0.50, 0.79 and 0.74: at m = 128, where parts of k decide, the order is lost.
"""

from __future__ import annotations

import dataclasses
import math

from warptile import formats
from warptile.contracts import Limits, Price, Problem
from warptile.kernels.price_model import (
    ThreadWork,
    Traffic,
    ceil_div,
    fill_of_last_wave,
    launch_seconds,
    registers,
    residency,
    spill_factor,
)
from warptile.kernels.vulkan.mul_mm_coop import shared
from warptile.kernels.vulkan.mul_mm_coop.tile import CHUNK, MulMmCoopTile

MATRIX_SPEEDUP = 643.0 / 67.0
# Mesa 26's lavapipe keeps matrices in memory. With a third its cheapest tile at (256, 512), m = 128, Q4_K is priced
# 4.7 ms (9.3 measured) and `mul_mm`'s 3.9 ms (2.8 measured): the order is right, the ratio is not.
SOFTWARE_SPEEDUP = 1 / 3
DECODE_SLOTS = {"subnormal": 1.25, "fp16": 1.75, "fp32": 3.5}
SCALE_SLOTS = 16.0
CONVERT_SLOTS = 0.5
MATRIX_WORD_SLOTS = 2.0
SUM_SLOTS = 80.0
LAUNCH_SECONDS = 2e-6


def price(tile: MulMmCoopTile, problem: Problem, limits: Limits) -> Price:
    """Price of a valid tile.

    A step stages tile_m * k_chunk activations and decodes tile_n * k_chunk weights (once a block; once a warp where
    each warp decodes its own), then each warp reads matrices_m + matrices_n operand matrices (matrices_m where weights
    are in registers) a k of the matrix and multiplies. At the end every thread's sums leave.
    """
    found = formats.by_name(problem.format)
    weight_bits = 8 * found.block_bytes / found.block_size
    groups = found.layout.groups_per_chunk
    grid = tile.grid(problem.n, problem.m)
    workgroups = math.prod(grid)
    steps = ceil_div(tile.part_k(problem.k), tile.k_chunk)
    threads = tile.workgroup
    shared_bytes = shared.shared_bytes(tile, groups)
    held = registers(for_workgroup(limits, threads), tile.accumulators, _operands(tile))
    resident = residency(limits, threads, shared_bytes, held.count)
    in_registers = tile.weights == "registers"
    copies = 1 if tile.weights == "block" else tile.warps_m

    x_elements = tile.tile_m * tile.k_chunk / threads
    w_elements = copies * tile.tile_n * tile.k_chunk / threads
    m, n, _ = tile.matrix_sides
    a_words = tile.matrices_m * m * tile.k_chunk / 2 / tile.subgroup
    b_words = 0.0 if in_registers else tile.matrices_n * n * tile.k_chunk / 2 / tile.subgroup
    scales = tile.tile_n * tile.k_chunk / CHUNK * groups / threads
    software = limits.kind == "software"
    speedup = SOFTWARE_SPEEDUP if software else MATRIX_SPEEDUP
    work = ThreadWork(
        fma=steps * tile.accumulators * tile.k_chunk / speedup,
        alu=steps
        * (
            w_elements * DECODE_SLOTS[tile.decode]
            + scales * SCALE_SLOTS
            + x_elements * CONVERT_SLOTS
            + (0.0 if software else a_words + b_words) * MATRIX_WORD_SLOTS
        )
        + tile.accumulators * SUM_SLOTS,
        shared_words=steps
        * (x_elements / 2 + (0.0 if in_registers else w_elements / 2) + (a_words + b_words if software else 0.0)),
        global_words=steps * (w_elements * weight_bits / 32 + x_elements * _x_bytes(problem) / 4) / 4,
        barriers=float(steps * _barriers(tile)),
        live=tile.accumulators,
    )
    output = 4.0 * problem.m * problem.n
    step_bytes = (tile.tile_n * weight_bits / 8 + tile.tile_m * _x_bytes(problem)) * tile.k_chunk
    parts = 2.0 * tile.split_k * output if tile.split_k > 1 else 0.0
    traffic = Traffic(
        requested_bytes=workgroups * steps * step_bytes + output + parts,
        compulsory_bytes=problem.n * problem.k * weight_bits / 8 + _x_bytes(problem) * problem.m * problem.k + output,
    )
    seconds = launch_seconds(
        limits, work, traffic, threads, workgroups, resident, spill_factor(tile.accumulators, held)
    )
    if tile.split_k > 1:
        seconds += LAUNCH_SECONDS + (parts / (limits.read_gb_per_s * 1e9) if limits.read_gb_per_s else 0.0)
    return Price(
        accumulators=tile.accumulators,
        registers=held.count,
        shared_bytes=shared_bytes,
        resident_threads=resident.threads,
        limited_by=resident.limited_by,
        barriers=_barriers(tile),
        intensity=problem.flops / traffic.requested_bytes,
        workgroups=workgroups,
        fill=fill_of_last_wave(limits, workgroups, resident.workgroups),
        seconds=seconds,
        spills=held.spills,
        notes=notes_of(tile, problem, limits, workgroups),
    )


def for_workgroup(limits: Limits, threads: int) -> Limits:
    """The limits with the most registers a thread at which a workgroup of `threads` still fits on a unit."""
    fitting = limits.registers_per_unit // threads // 8 * 8
    most = limits.max_registers_per_thread
    if not fitting or not most or limits.register_bands:
        return limits
    return dataclasses.replace(limits, max_registers_per_thread=min(most, fitting))


def _barriers(tile: MulMmCoopTile) -> int:
    return 1 if tile.buffers == 2 else 2


def _x_bytes(problem: Problem) -> int:
    return 2 if problem.x_dtype == "fp16" else 4


def _operands(tile: MulMmCoopTile) -> int:
    """32-bit registers of operands at the widest point: the a matrices, one b, and what is fetched ahead."""
    m, n, k = tile.matrix_sides
    matrices = (tile.matrices_m * m * k + n * k) // 2 // tile.subgroup
    ahead = tile.tile_m * tile.k_chunk // 2 // tile.workgroup
    if tile.weights == "registers":
        ahead += (tile.prefetch + 1) * tile.matrices_n * 2 + tile.matrices_n * 2
    else:
        ahead += tile.tile_n * tile.k_chunk // 8 // tile.workgroup
    return matrices + (ahead if tile.prefetch else ahead // 2)


def notes_of(tile: MulMmCoopTile, problem: Problem, limits: Limits, workgroups: int) -> tuple[str, ...]:
    """Units left idle, and tile area outside y, in words."""
    notes: list[str] = []
    if limits.units and workgroups < limits.units:
        notes.append(f"{workgroups} workgroups leave {limits.units - workgroups} of {limits.units} units idle")
    area = tile.grid(problem.n, problem.m)
    waste = 1 - problem.n * problem.m / (area[0] * area[1] * tile.tile_n * tile.tile_m)
    if waste >= 0.1:
        notes.append(f"{waste:.0%} of the tile area lies outside y")
    return tuple(notes)
