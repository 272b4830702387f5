"""What a tile of `vulkan.mul_mmq` costs on paper."""

from __future__ import annotations

from warptile import formats
from warptile.contracts import Limits, Price, Problem
from warptile.formats import Format
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
from warptile.kernels.vulkan import q8_1
from warptile.kernels.vulkan.mul_mmq import software_price, trit_loader
from warptile.kernels.vulkan.mul_mmq.shader import block_plane
from warptile.kernels.vulkan.mul_mmq.staging import INT8_WORDS, shared_bytes, staging
from warptile.kernels.vulkan.mul_mmq.tile import MulMmqTile
from warptile.layouts.trits import TritPlane

BARRIERS_A_STEP = 2
# Issue slots of one dot of two words, of one word of int8 from packed codes, of one step of a base-3 loader, of a
# chunk's addressing.
DOT_SLOTS = {"int_dot": 1.0, "plain": 10.0}
UNPACK_SLOTS = 3.0
CODEBOOK_SLOTS = 16.0
TRIT_CHUNK_SLOTS = 20.0
TRIT_STEP_SLOTS = 12.0
CHUNK_SLOTS = 8.0
QUANTIZE_SLOTS = 120.0
# A K-step's global loads are waited for as long as this many barriers; other workgroups fill the wait, unless
# the tile spills: its sums come from the same caches that its neighbours' do.
LOAD_WAIT_BARRIERS = 8


def price(tile: MulMmqTile, problem: Problem, limits: Limits) -> Price:
    """Price of a valid tile, its pre-pass included.

    A K-step stages bk_step chunks of tile_n weight rows and tile_m tokens, shared by all threads; each thread reads its
    rows and tokens from there and takes 8 dots a sum and chunk, and two or more fp32 operations to scale each chunk's
    sum.
    """
    fmt = formats.by_name(problem.format)
    held = staging(tile, fmt.layout)
    shared = shared_bytes(tile, problem.format)
    grid_n, grid_m = ceil_div(problem.n, tile.tile_n), ceil_div(problem.m, tile.tile_m)
    steps = ceil_div(problem.k, tile.step_k)
    chunks = steps * tile.bk_step
    rows, tokens = tile.warp_iterations_n * tile.thread_n, tile.warp_iterations_m * tile.thread_m
    numbers = held.groups * (1 + held.minimum)
    operands = rows * (INT8_WORDS + numbers) + q8_1.BLOCK_WORDS
    used = registers(limits, tile.accumulators, operands)
    resident = residency(limits, tile.block_size, shared, used.count)

    weight_words = held.code_words + held.scale_words
    staged_weights = tile.tile_n / tile.block_size
    staged_words = staged_weights * weight_words + tile.tile_m * q8_1.BLOCK_WORDS / tile.block_size
    read_words = rows * weight_words + tokens * q8_1.BLOCK_WORDS
    loaded_words = (
        staged_weights * 8 * fmt.block_bytes / fmt.block_size + tile.tile_m * q8_1.BLOCK_WORDS / tile.block_size
    )
    dots = (tile.accumulators + (tokens if held.minimum else 0)) * INT8_WORDS
    unpacked = staged_weights if tile.staged == "int8" else float(rows)
    alu = (
        dots * DOT_SLOTS[tile.dot]
        + staged_weights * (CHUNK_SLOTS + _loading_slots(tile, fmt))
        + unpacked * INT8_WORDS * _unpack_slots(fmt)
        + tile.accumulators * held.groups
    )
    waits = steps * (BARRIERS_A_STEP + LOAD_WAIT_BARRIERS) * (resident.workgroups if used.spills else 1.0)
    # Sums beyond the registers are stored and loaded again around a K-step's barriers.
    spilled_words = 2.0 * max(0, tile.accumulators - used.budget) if used.spills else 0.0
    work = ThreadWork(
        fma=float(chunks * tile.accumulators * (1 + numbers)),
        alu=chunks * alu,
        shared_words=chunks * (staged_words + read_words),
        global_words=chunks * loaded_words + steps * spilled_words,
        barriers=waits,
        live=tile.accumulators,
    )
    quantized = 4.0 * q8_1.BLOCK_WORDS * problem.m * (problem.k // q8_1.BLOCK)
    moved = problem.n * problem.k * fmt.block_bytes / fmt.block_size + 4.0 * problem.m * problem.n + quantized
    workgroups = grid_n * grid_m
    step_bytes = tile.bk_step * (32 * tile.tile_n * fmt.block_bytes / fmt.block_size + 36 * tile.tile_m)
    traffic = Traffic(workgroups * steps * step_bytes + 4.0 * problem.m * problem.n, moved)
    slow_down = spill_factor(tile.accumulators, used)
    if limits.kind == "software":
        seconds = software_price.seconds(tile, held, problem, limits, _loading_slots(tile, fmt))
    else:
        seconds = launch_seconds(limits, work, traffic, tile.block_size, workgroups, resident, slow_down)
    return Price(
        accumulators=tile.accumulators,
        registers=used.count,
        shared_bytes=shared,
        resident_threads=resident.threads,
        limited_by=resident.limited_by,
        barriers=BARRIERS_A_STEP,
        intensity=problem.flops / traffic.requested_bytes,
        workgroups=workgroups,
        fill=fill_of_last_wave(limits, workgroups, resident.workgroups),
        seconds=seconds + quantize_seconds(problem, limits),
        spills=used.spills,
        notes=_notes(tile, problem, limits, steps, used.spills, used.budget),
    )


def quantize_seconds(problem: Problem, limits: Limits) -> float:
    """Roofline of the pre-pass: a thread a block of 32 activations."""
    blocks = problem.m * (problem.k // q8_1.BLOCK)
    words = 32 + q8_1.BLOCK_WORDS
    work = ThreadWork(fma=0.0, alu=QUANTIZE_SLOTS, global_words=float(words))
    nbytes = 4.0 * blocks * words
    return launch_seconds(limits, work, Traffic(nbytes, nbytes), 64, ceil_div(blocks, 64), residency(limits, 64, 0, 64))


def _unpack_slots(fmt: Format) -> float:
    codebook = fmt.layout.codebook
    return CODEBOOK_SLOTS if codebook is not None and len(codebook.values) > 2 else UNPACK_SLOTS


def _loading_slots(tile: MulMmqTile, fmt: Format) -> float:
    """Slots a staged chunk costs beyond its loads and its unpacking to int8."""
    plane = block_plane(tile, fmt.layout)
    if plane is None:
        return INT8_WORDS * TRIT_CHUNK_SLOTS if isinstance(fmt.layout.codes, TritPlane) else 0.0
    block = trit_loader.steps(plane, tile.loader) * trit_loader.lanes(plane) * TRIT_STEP_SLOTS
    return block / trit_loader.block_chunks(plane)


def _notes(
    tile: MulMmqTile, problem: Problem, limits: Limits, steps: int, spills: bool, budget: int
) -> tuple[str, ...]:
    notes: list[str] = [f"{BARRIERS_A_STEP * steps} barriers: one K-step is {tile.step_k} elements"]
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
