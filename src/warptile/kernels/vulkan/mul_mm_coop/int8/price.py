"""What a tile of int8 operands costs on paper.

Constants of rate are issue slots of one fp32 multiply-add. MATRIX_SPEEDUP: an H200's matrix units ran 1286 TOP/s of
int8 from registers, its vector units are rated 67 TFLOP/s; a software device has none. FOLD_SLOTS: a whole-number sum
becomes fp32 and is scaled, a sum and group: two operations of full rate; through shared memory a store, a load, a
conversion and up to three operations. MATRIX_WORD_SLOTS and SUM_SLOTS as for fp16 (`mul_mm_coop.price`).

`Latencies` are fitted for NVIDIA, with ISSUED (issue slots taken for one counted), to the least mean of
|log(price / time)| on 278 tiles at m = 128 on one H200 (Q4_K, Q6_K; three shapes; `benchmarks/coop_int8.py`): 0.18,
Spearman 0.87 to 0.98 over all tiles of a shape and 0.70 to 0.76 over those drawn. Elsewhere they are nominal, two trips
to shared memory a sum for raw scales; AMD's compiler issues a step's loads together, so a warp that reads its own
activations does not wait for each sum's. With these the arms that the source of `rdna4-bigtile` measured on RDNA4 come
in its order.
QUANTIZE_SECONDS: the pre-pass beside its roofline.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from warptile import formats
from warptile.contracts import Limits, Price, Problem
from warptile.kernels.price_model import (
    GLOBAL_WORD_SLOTS,
    NOMINAL_GPU_FLOPS,
    SHARED_WORD_SLOTS,
    Residency,
    ThreadWork,
    Traffic,
    ceil_div,
    fill_of_last_wave,
    launch_seconds,
    registers,
    residency,
    spill_factor,
)
from warptile.kernels.vulkan.mul_mm_coop import price as common
from warptile.kernels.vulkan.mul_mm_coop.int8 import launch
from warptile.kernels.vulkan.mul_mm_coop.int8.plan import COLUMNS, Plan
from warptile.kernels.vulkan.mul_mm_coop.tile import CHUNK, MulMmCoopTile

MATRIX_SPEEDUP = 1286.0 / 67.0
SOFTWARE_SPEEDUP = 1 / 3
UNPACK_SLOTS = 0.75
CODEBOOK_SLOTS = 4.0
SCALE_SLOTS = 16.0
FOLD_SLOTS = {"lanes": 2.0, "broadcast": 2.0, "raw": 8.0}
MEET_BARRIERS = 0.25
# A warp with raw scales reads its activations' sums and scales from memory too, cell by cell.
RAW_READS = 4.0
QUANTIZE_SLOTS = 20.0
ISSUED = 1.9
QUANTIZE_SECONDS = 5e-6


@dataclass(frozen=True)
class Latencies:
    """Seconds of a warp alone. load: a step's loads; ahead: the share of it where they are issued a step before.

    total: a whole-number sum, its operands and its scaling; raw: more where it goes through shared memory; private:
    more where its activations come from memory. barrier; decode: a weight of a thread.
    """

    load: float
    ahead: float
    total: float
    raw: float
    private: float
    barrier: float = 30e-9
    decode: float = 1.5e-9


NVIDIA = Latencies(load=1e-6, ahead=0.47, total=47e-9, raw=240e-9, private=200e-9)
NOMINAL = Latencies(load=700e-9, ahead=0.35, total=65e-9, raw=60e-9, private=0.0)


def price(tile: MulMmCoopTile, problem: Problem, limits: Limits) -> Price:
    """Price of a valid tile, its pre-pass included.

    A step stages tile_n * k_chunk weights as bytes (once a block or a warp) and, where shared, tile_m * k_chunk
    activations; each warp then reads matrices_m + matrices_n operand matrices a k of the matrix (every pair anew where
    scales are raw), and scales every whole-number sum once a fold.
    """
    found = formats.by_name(problem.format)
    plan = Plan.of(tile, found.layout)
    weight_bits = 8 * found.block_bytes / found.block_size
    workgroups = math.prod(tile.grid(problem.n, problem.m))
    steps = ceil_div(launch.part_k(plan, problem.k), tile.k_chunk)
    threads = tile.workgroup
    shared_bytes = plan.shared_bytes()
    held = registers(common.for_workgroup(limits, threads), 2 * tile.accumulators, _operands(plan))
    resident = residency(limits, threads, shared_bytes, held.count)
    software, raw = limits.kind == "software", tile.scales == "raw"
    speedup = SOFTWARE_SPEEDUP if software else MATRIX_SPEEDUP

    m, n, _ = tile.matrix_sides
    gaps = 2 if plan.gapped else 1
    pairs = tile.matrices_m * tile.matrices_n
    a_words = (pairs if raw else tile.matrices_m) * gaps * m * tile.k_chunk / 4 / tile.subgroup
    b_words = (pairs if raw else tile.matrices_n) * gaps * n * tile.k_chunk / 4 / tile.subgroup
    minimum_words = plan.columns / 2 * (tile.matrices_m * m + tile.matrices_n * n) / tile.subgroup
    scale_words = (
        0.0 if raw else tile.matrices_n * plan.folds * m * n / tile.subgroup / (2 if tile.scales == "lanes" else 1)
    )
    private = tile.activations == "private"
    words = b_words + minimum_words + scale_words + (0.0 if private else a_words)
    w_elements = plan.weight_sets * plan.weight_rows * tile.k_chunk / threads
    x_elements = 0.0 if private else tile.tile_m * tile.k_chunk / threads
    unpack = UNPACK_SLOTS if found.layout.affine else CODEBOOK_SLOTS
    scales = plan.weight_sets * plan.weight_rows * plan.folds / threads
    if raw:
        scales = tile.matrices_n * plan.folds * (0.5 if plan.six_bit else 1.0)
    used = ceil_div(problem.m, m) / (tile.grid(1, problem.m)[0 if tile.first == "m" else 1] * tile.tile_m // m)
    used = max(used, 1 / tile.matrices_m)
    folds = used * tile.accumulators * plan.folds
    spans = tile.k_chunk / plan.span
    meets = pairs * plan.folds * MEET_BARRIERS if raw else 0.0
    work = ThreadWork(
        fma=steps * tile.accumulators * (gaps * tile.k_chunk + spans * plan.columns * 2) / speedup,
        alu=steps
        * (
            w_elements * unpack
            + scales * SCALE_SLOTS
            + folds * (FOLD_SLOTS[tile.scales] + (2.0 if raw and plan.sums else 0.0))
            + tile.accumulators * spans
            + (0.0 if software else words * common.MATRIX_WORD_SLOTS)
        )
        + tile.accumulators * common.SUM_SLOTS,
        shared_words=steps
        * (x_elements / 4 + w_elements * plan.weight_row_bytes / tile.k_chunk / 4 + (words if software else 0.0)),
        global_words=steps * (w_elements * weight_bits / 32 / 4 + x_elements / 16 + (a_words if private else 0.0)),
        barriers=steps * (_barriers(plan) * tile.k_chunk / plan.step + meets),
        live=2 * tile.accumulators,
    )
    output = 4.0 * problem.m * problem.n
    step_bytes = (tile.tile_n * weight_bits / 8 + tile.tile_m) * tile.k_chunk
    parts = 2.0 * tile.split_k * output if tile.split_k > 1 else 0.0
    traffic = Traffic(
        requested_bytes=workgroups * steps * step_bytes + output + parts,
        compulsory_bytes=problem.n * problem.k * weight_bits / 8 + problem.m * problem.k + output,
    )
    slow = spill_factor(2 * tile.accumulators, held)
    if software:
        seconds = launch_seconds(limits, work, traffic, threads, workgroups, resident, slow)
    else:
        seconds = _waves(
            limits,
            work,
            traffic,
            threads,
            workgroups,
            resident,
            slow * steps * _step_latency(plan, used, NVIDIA if limits.vendor == "nvidia" else NOMINAL),
        )
    seconds += quantize_seconds(plan, problem, limits)
    if tile.split_k > 1:
        seconds += common.LAUNCH_SECONDS + (parts / (limits.read_gb_per_s * 1e9) if limits.read_gb_per_s else 0.0)
    return Price(
        accumulators=tile.accumulators,
        registers=held.count,
        shared_bytes=shared_bytes,
        resident_threads=resident.threads,
        limited_by=resident.limited_by,
        barriers=_barriers(plan),
        intensity=problem.flops / traffic.requested_bytes,
        workgroups=workgroups,
        fill=fill_of_last_wave(limits, workgroups, resident.workgroups),
        seconds=seconds,
        spills=held.spills,
        notes=common.notes_of(tile, problem, limits, workgroups),
    )


def _step_latency(plan: Plan, used: float, wait: Latencies) -> float:
    """Seconds of a step of one warp alone: its loads, barriers, decoding, then every whole-number sum, each in turn."""
    tile = plan.tile
    sums = tile.matrices_n * (1.0 + (tile.matrices_m - 1.0) * used) * plan.folds
    each = wait.total + (wait.raw if tile.scales == "raw" else 0.0)
    loads = wait.load * (wait.ahead if tile.prefetch else 1.0)
    if tile.activations == "private":
        each += wait.private * (RAW_READS if tile.scales == "raw" else 1.0)
    decoded = plan.weight_rows * tile.k_chunk / (tile.workgroup if tile.weights == "block" else tile.subgroup)
    meets = 2 * wait.barrier if tile.activations == "shared" or tile.weights == "block" else 0.0
    return loads + meets + decoded * wait.decode + sums * each


def _waves(
    limits: Limits,
    work: ThreadWork,
    traffic: Traffic,
    threads: int,
    workgroups: int,
    resident: Residency,
    alone: float,
) -> float:
    """Seconds of a launch as waves of resident workgroups: full ones, then what is left, spread over the units.

    A wave of c workgroups a unit takes max(alone, c * issue): a workgroup's own chain of latencies, or the unit's rate
    on what all c issue. Units that get no workgroup, or fewer than they can hold, do not make the others faster.
    """
    units = limits.units or 1
    rate = (limits.fp32_tflops * 1e12 or NOMINAL_GPU_FLOPS) / 2 / units
    slots = work.fma + work.alu + work.shared_words * SHARED_WORD_SLOTS + work.global_words * GLOBAL_WORD_SLOTS
    issue = ISSUED * slots * threads / rate
    held = max(1, resident.workgroups)
    full, left = divmod(workgroups, units * held)
    seconds = full * max(alone, held * issue)
    if left:
        seconds += max(alone, ceil_div(left, units) * issue)
    memory = traffic.compulsory_bytes / (limits.read_gb_per_s * 1e9) if limits.read_gb_per_s else 0.0
    return max(seconds, memory)


def quantize_seconds(plan: Plan, problem: Problem, limits: Limits) -> float:
    """Roofline of the pre-pass: a thread four activations."""
    rows, k = plan.padded(problem)
    threads = rows * k // 4
    work = ThreadWork(fma=0.0, alu=QUANTIZE_SLOTS, global_words=1.5, shared_words=plan.tile.x_block / 4)
    nbytes = 5.0 * rows * k
    own = residency(limits, 64, 512, 32)
    seconds = launch_seconds(limits, work, Traffic(nbytes, nbytes), 64, ceil_div(threads, 64), own)
    return seconds + (0.0 if limits.kind == "software" else QUANTIZE_SECONDS)


def _barriers(plan: Plan) -> int:
    """Workgroup barriers as k passes by a whole step (`Plan.step`): none where nothing passes between warps."""
    met = plan.tile.activations == "shared" or plan.tile.weights == "block"
    return 2 * plan.step // plan.tile.k_chunk if met else 0


def _operands(plan: Plan) -> int:
    """32-bit registers of operands at the widest point: b and scales of a fold, one a, and what is fetched ahead."""
    tile = plan.tile
    m, n, k = tile.matrix_sides
    matrices = (m * k + tile.matrices_n * n * max(k, min(plan.fold, 2 * CHUNK))) // 4 // tile.subgroup
    scales = tile.matrices_n * (
        plan.folds * (2 if plan.minimum else 1) if tile.scales == "raw" else m * n // tile.subgroup
    )
    minimums = tile.matrices_n * COLUMNS * n // 2 // tile.subgroup if plan.columns else 0
    ahead = plan.weight_sets * plan.weight_rows * tile.k_chunk // 8 // tile.workgroup
    ahead += 0 if tile.activations == "private" else tile.tile_m * tile.k_chunk // 4 // tile.workgroup
    return matrices + scales + minimums + (ahead if tile.prefetch else ahead // 2)
