"""What kernels share to price a tile: registers, residency, shared-memory formulas, an instruction roofline.

Everything here is arithmetic on a tile's numbers and a device's `Limits`; nothing is measured. A kernel describes
what one thread does over a whole launch (`ThreadWork`) and what the launch moves (`Traffic`), `launch_seconds` folds in
the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from warptile.contracts import Limits, UnusableInput

# Cost of one event a thread, in issue slots of one multiply-add.
SHARED_WORD_SLOTS = 1.0
GLOBAL_WORD_SLOTS = 4.0
# A workgroup alone on its unit waits this many slots at a barrier; others resident beside it fill the wait.
BARRIER_SLOTS = 64.0
# Half of a unit's rate is reached with a sixteenth of the threads it can hold, and spilling costs a factor of
# 2.2 at twice the accumulators that fit: the Mali-G610's measured steps 5.8, 9.7, 23.4, 25.8, 28.1.
HALF_RATE_SHARE = 1 / 16
SPILL_FACTOR = 1.2

# Software devices: a multiply-add is two vector instructions; a load or store with an address a lane is taken apart.
SOFTWARE_FMA = 2.0
SOFTWARE_LANE_ACCESS = 2.0
SOFTWARE_BARRIER = 50.0
# Sums beyond these vector registers are loaded and stored around each multiply-add.
SOFTWARE_SUMS = 12

# Where a device does not state its rates, the price keeps its order with these.
NOMINAL_GPU_FLOPS = 1e12
NOMINAL_SOFTWARE_INSTRUCTIONS = 2e9


def ceil_div(a: int, b: int) -> int:
    """ceil(a / b) for positive b."""
    return -(-a // b)


@dataclass(frozen=True)
class Registers:
    """Estimated 32-bit registers a thread, and whether the tile is expected to spill."""

    count: int
    spills: bool
    budget: int


@dataclass(frozen=True)
class Residency:
    """Threads one unit holds at once, cut to whole workgroups, and which limit decides."""

    threads: int
    workgroups: int
    limited_by: str


@dataclass(frozen=True)
class ThreadWork:
    """What one thread does over the whole launch (padding counted).

    fma: fp32 multiply-adds. alu: other arithmetic (decode, conversion, addressing). shared_words, global_words,
    uniform_words: 32-bit words loaded or stored with an address of the lane's own in shared and global memory, or
    with one address for the whole subgroup. barriers: workgroup barriers passed. live: sums kept from step to step.
    """

    fma: float
    alu: float = 0.0
    shared_words: float = 0.0
    global_words: float = 0.0
    uniform_words: float = 0.0
    barriers: float = 0.0
    live: int = 0


@dataclass(frozen=True)
class Traffic:
    """Bytes of global memory: requested by all workgroups together, and the least the device must move once."""

    requested_bytes: float
    compulsory_bytes: float


def registers(limits: Limits, accumulators: int, operands: int, overhead: int = 24) -> Registers:
    """Registers a thread that holds `accumulators` fp32 sums and `operands` 32-bit values at its widest point.

    On a device with register bands (Mali), the paper rule is: a thread whose accumulators take half of the first
    band's registers or more sits in the next one, and accumulators above a quarter of the last band count as spilling
    (16 and 16 on the Mali-G610's bands of 32 and 64). Elsewhere registers = accumulators + operands + overhead, and
    it spills above the device's most a thread. budget: accumulators that fit without spilling.
    """
    if limits.register_bands:
        bands = sorted(limits.register_bands, key=lambda band: band.registers)
        budget = bands[-1].registers // 4
        fitting = next((band for band in bands if 2 * accumulators < band.registers), bands[-1])
        return Registers(fitting.registers, accumulators > budget, budget)
    count = accumulators + operands + overhead
    most = limits.max_registers_per_thread
    if not most:
        return Registers(count, False, accumulators)
    return Registers(min(count, most), count > most, max(1, most - operands - overhead))


def residency(limits: Limits, workgroup: int, shared_bytes: int, registers_per_thread: int) -> Residency:
    """Threads a unit holds: min(registers, shared memory, threads, workgroups), each cut to whole workgroups.

    workgroup: its threads; shared_bytes: a workgroup's. A limit the device does not state (0) does not take part; with
    none stated the result is one workgroup, limited by "unknown". Software devices run one workgroup a host thread.
    """
    if limits.kind == "software":
        return Residency(workgroup, 1, "threads")
    counts: list[tuple[int, str]] = []
    band_threads = [b.threads for b in limits.register_bands if b.registers >= registers_per_thread]
    if band_threads:
        counts.append((max(band_threads) // workgroup, "registers"))
    elif limits.registers_per_unit and registers_per_thread:
        allocated = ceil_div(registers_per_thread, 8) * 8
        counts.append((limits.registers_per_unit // allocated // workgroup, "registers"))
    if limits.shared_bytes_per_unit and shared_bytes:
        counts.append((limits.shared_bytes_per_unit // shared_bytes, "shared memory"))
    if limits.threads_per_unit:
        counts.append((limits.threads_per_unit // workgroup, "threads"))
    if limits.workgroups_per_unit:
        counts.append((limits.workgroups_per_unit, "workgroups"))
    if not counts:
        return Residency(workgroup, 1, "unknown")
    fit, name = min(counts, key=lambda pair: pair[0])
    return Residency(fit * workgroup, fit, name)


def fill_of_last_wave(limits: Limits, workgroups: int, resident_workgroups: int) -> float:
    """Share of the last wave of workgroups that is busy, 0..1; 1 where the number of units is not known."""
    capacity = limits.units * max(1, resident_workgroups)
    if not capacity or not workgroups:
        return 1.0
    return (workgroups % capacity or capacity) / capacity


def spill_factor(accumulators: int, held: Registers) -> float:
    """Slow-down expected from spilling: 1 without, 1 + SPILL_FACTOR * min(excess / budget, 2 ** 0.5) with."""
    if not held.spills:
        return 1.0
    excess = max(0, accumulators - held.budget) / held.budget
    return 1.0 + SPILL_FACTOR * min(max(excess, 0.1), 2**0.5)


def launch_seconds(
    limits: Limits,
    work: ThreadWork,
    traffic: Traffic,
    workgroup: int,
    workgroups: int,
    resident: Residency,
    slow_down: float = 1.0,
) -> float:
    """Roofline of one launch, in seconds comparable within one device and problem.

    GPU: max(compute, compulsory bytes / read bandwidth). compute = (workgroups a unit) * (slots a workgroup) /
    (slots/s of a unit) / efficiency, where slots a thread = fma + alu + weighted words + barrier waits, and efficiency
    is t / (t + h) for t threads really resident. Software: vector instructions of all workgroups over all host
    threads; the shader is split at each barrier, so what lives across it is stored and loaded again.
    """
    if limits.kind == "software":
        return _software_seconds(limits, work, workgroup, workgroups) * slow_down
    units = limits.units or 1
    a_unit = ceil_div(workgroups, units)
    together = max(1, min(resident.workgroups, a_unit))
    slots = (
        work.fma
        + work.alu
        + work.shared_words * SHARED_WORD_SLOTS
        + work.global_words * GLOBAL_WORD_SLOTS
        + work.uniform_words
        + work.barriers * BARRIER_SLOTS / together
    )
    threads = together * workgroup
    half = (limits.threads_per_unit or 1024) * HALF_RATE_SHARE
    rate = (limits.fp32_tflops * 1e12 or NOMINAL_GPU_FLOPS) / 2 / units
    compute = a_unit * slots * workgroup * slow_down / rate * (threads + half) / threads
    memory = traffic.compulsory_bytes / (limits.read_gb_per_s * 1e9) if limits.read_gb_per_s else 0.0
    return max(compute, memory)


def _software_seconds(limits: Limits, work: ThreadWork, workgroup: int, workgroups: int) -> float:
    lanes = limits.subgroup
    in_memory = max(0.0, 1 - SOFTWARE_SUMS / work.live) if work.live else 0.0
    instructions = (
        work.fma * (SOFTWARE_FMA + 2 * in_memory)
        + work.alu
        + (work.shared_words + work.global_words) * SOFTWARE_LANE_ACCESS * lanes
        + work.uniform_words
        + work.barriers * (SOFTWARE_BARRIER + 2 * work.live)
    )
    vectors = ceil_div(workgroup, lanes)
    rounds = ceil_div(workgroups, limits.units) if limits.units else workgroups
    return rounds * vectors * instructions / NOMINAL_SOFTWARE_INSTRUCTIONS


def mul_mm_shared_bytes(tile_n: int, tile_m: int, tile_k: int, shared: str) -> int:
    """Shared bytes of one workgroup of mul_mm: (tile_n + tile_m) rows of tile_k / 2 + 1 pairs.

    shared: element type of a pair, "fp16" (4 bytes a pair) or "fp32" (8). The spare pair a row keeps neighbouring
    rows in different banks. At tile_k = 32: 68 or 136 bytes a row, the sizes drivers report for llama.cpp's shader.
    """
    pair_bytes = {"fp16": 4, "fp32": 8}[shared]
    return (tile_k // 2 + 1) * pair_bytes * (tile_n + tile_m)


MMQ_WEIGHT_BYTES: Mapping[str, int] = MappingProxyType(
    {"Q2_K": 16}
    | dict.fromkeys(("Q4_0", "Q4_1", "Q3_K", "Q4_K"), 20)
    | dict.fromkeys(("Q5_0", "Q5_1"), 24)
    | dict.fromkeys(("Q8_0", "Q5_K", "Q6_K", "MXFP4"), 36)
)
MMQ_ACTIVATION_BYTES = 36


def mul_mmq_shared_bytes(format_name: str, tile_n: int, tile_m: int, bk_step: int) -> int:
    """Shared bytes of one workgroup of llama.cpp's mul_mmq with fp16: bk_step * (a * tile_n + 36 * tile_m).

    a: bytes of one cached block of 32 weights, by format. Raises UnusableInput for a format without such a block.
    """
    if format_name not in MMQ_WEIGHT_BYTES:
        raise UnusableInput(f"mul_mmq has no cached block for {format_name}; it has {', '.join(MMQ_WEIGHT_BYTES)}")
    return bk_step * (MMQ_WEIGHT_BYTES[format_name] * tile_n + MMQ_ACTIVATION_BYTES * tile_m)
