"""What a register tile costs on paper, on a GPU or on a software device."""

from __future__ import annotations

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
from warptile.kernels.vulkan import software_price
from warptile.kernels.vulkan.software_price import CHUNK, DirectWork

# Slots to decode one weight and to pass one element of x between lanes, in multiply-adds.
DECODE_SLOTS = 3.0
SHUFFLE_SLOTS = 1.0


def price(
    problem: Problem,
    limits: Limits,
    lanes_n: int,
    split_k: int,
    thread_n: int,
    thread_m: int,
    load_n: int,
    x_access: str,
) -> Price:
    """Price of a valid register tile: lanes_n lanes along n, split_k parts along k, thread_n x thread_m sums a lane."""
    found = formats.by_name(problem.format)
    workgroup = lanes_n * split_k
    workgroups = ceil_div(problem.n, lanes_n * thread_n) * ceil_div(problem.m, thread_m)
    chunks = ceil_div(problem.k // CHUNK, split_k)
    sums = thread_n * thread_m
    shared = 4 * (split_k - 1) * sums * lanes_n
    held = registers(limits, sums, 4 * thread_n + 4)
    resident = residency(limits, workgroup, shared, held.count)
    weight_bytes = found.block_bytes / found.block_size
    traffic = Traffic(
        requested_bytes=(
            workgroups * problem.k * (lanes_n * thread_n * weight_bytes + 4 * thread_m) + 4.0 * problem.m * problem.n
        ),
        compulsory_bytes=problem.n * problem.k * weight_bytes + 4.0 * problem.m * (problem.k + problem.n),
    )
    notes: list[str] = []
    if limits.kind == "software":
        work = DirectWork(chunks, thread_n, thread_m, load_n, x_access, split_k)
        subgroups = ceil_div(workgroup, limits.subgroup)
        seconds = software_price.launch_seconds(found, work, limits.subgroup, subgroups, workgroups, limits.units)
        spills = sums > software_price.SUMS_IN_REGISTERS
        compiling = software_price.compile_seconds(found, work, limits.subgroup)
        if compiling >= 1.0:
            notes.append(f"compiles in about {compiling:.0f} s the first time")
    else:
        slots = _gpu_work(chunks, thread_n, thread_m, x_access, split_k, weight_bytes, limits.subgroup)
        slow_down = spill_factor(sums, held)
        seconds = launch_seconds(limits, slots, traffic, workgroup, workgroups, resident, slow_down)
        spills = held.spills
    if spills:
        notes.append(f"{sums} sums a thread do not fit the registers")
    waste = 1 - problem.n * problem.m / (workgroups * lanes_n * thread_n * thread_m)
    if waste >= 0.1:
        notes.append(f"{waste:.0%} of the tile area lies outside y")
    return Price(
        accumulators=sums,
        registers=held.count,
        shared_bytes=shared,
        resident_threads=resident.threads,
        limited_by=resident.limited_by,
        barriers=0,
        intensity=problem.flops / traffic.requested_bytes,
        workgroups=workgroups,
        fill=fill_of_last_wave(limits, workgroups, resident.workgroups),
        seconds=seconds,
        spills=spills,
        notes=tuple(notes),
    )


def _gpu_work(
    chunks: int, thread_n: int, thread_m: int, x_access: str, split_k: int, weight_bytes: float, subgroup: int
) -> ThreadWork:
    elements = chunks * CHUNK
    x_words = elements * thread_m
    own, alike, shuffles = 0.0, float(x_words) / 4, 0.0
    if x_access != "direct":
        own, alike, shuffles = x_words / subgroup, 0.0, float(x_words)
    return ThreadWork(
        fma=float(elements * thread_n * thread_m),
        alu=elements * thread_n * DECODE_SLOTS + shuffles * SHUFFLE_SLOTS,
        shared_words=thread_n * thread_m * (2.0 if split_k > 1 else 0.0),
        global_words=elements * thread_n * weight_bytes / 4 + own,
        uniform_words=alike,
        barriers=1.0 if split_k > 1 else 0.0,
        live=thread_n * thread_m,
    )
