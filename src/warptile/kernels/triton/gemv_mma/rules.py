"""When a tile of `triton.gemv_mma` is valid, and what it takes."""

from __future__ import annotations

from warptile.contracts import BrokenRule, Limits, Problem
from warptile.kernels.price_model import ceil_div
from warptile.kernels.triton.common import DTYPE_BYTES, arranged, device_rules, parameters, powers_of_two, shape_rules
from warptile.kernels.triton.gemv_mma.tile import GemvMmaTile
from warptile.kernels.triton.matrix import architecture, is_nvidia

MOST_TOKENS = 64
LEAST_STEP = 128
ROW_WARPS = (1, 2, 4, 8, 16)
COLUMNS = 8
COPIED = ("fp16", "bf16")
MOST_AHEAD = 3
MOST_STEPS = 2
# Counts at which a unit of 65536 holds 24, 20, 16 and 12 warps, and by how much the compiler stays below the paper.
REGISTER_STEPS = (80, 96, 128, 168)
PAPER_MARGIN = 8
# The same where a word of 4-bit codes becomes weights in one go.
NIBBLE_MARGIN = 16
DEPENDENT_LAUNCH = ("sm_90", "sm_120")


def columns(tile: GemvMmaTile) -> int:
    """Columns of the sums: tokens, at least a matrix instruction's."""
    return max(COLUMNS, tile.tile_m)


def stretch(tile: GemvMmaTile) -> int:
    """Steps that all warps of a program take at once."""
    return tile.warps // tile.row_warps * tile.steps


def stretches(tile: GemvMmaTile, problem: Problem) -> int:
    """How often each warp of a program takes its steps."""
    steps = problem.k // arranged(problem).step
    return ceil_div(ceil_div(steps, tile.split_k), stretch(tile))


def full(tile: GemvMmaTile, problem: Problem) -> bool:
    """Whether every warp has all its steps at any time, so that no load need ask."""
    steps = problem.k // arranged(problem).step
    return steps == tile.split_k * stretches(tile, problem) * stretch(tile)


def shared_bytes(tile: GemvMmaTile, problem: Problem) -> int:
    """Shared bytes of a program: its part of x in fp16, or sums on their way from warp to warp if they are more.

    Warps over rows that share bf16 or fp32 rows of x find their largest together; for that it is the most it can take.
    """
    count = stretches(tile, problem)
    if tile.direct:
        held = count * stretch(tile) * arranged(problem).step * tile.tile_m * 2
        # The largest numbers of bf16 rows on their way from warp to warp.
        held += 0 if problem.x_dtype == "fp16" else 4 * tile.tile_m * tile.warps
        return max(held, tile.warps * tile.tile_n // tile.row_warps * columns(tile) * 4)
    at_once = max(1, min(8 // min(tile.tile_m, 8), 1 << (count - 1).bit_length()))
    held = ceil_div(count, at_once) * at_once
    activations = held * stretch(tile) * arranged(problem).step * tile.tile_m * 2
    if problem.x_dtype != "fp16" and tile.row_warps > 1:
        activations += 4 * tile.tile_m * tile.warps * tile.steps * at_once
    return max(activations, tile.warps * tile.tile_n // tile.row_warps * columns(tile) * 4)


def broken_rules(tile: GemvMmaTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """Every rule the tile breaks."""
    broken = shape_rules(problem) or device_rules(limits)
    broken += powers_of_two(tile, ("tile_n", "tile_m", "warps", "row_warps", "steps"))
    if not is_nvidia(limits) and limits.kind != "software":
        broken.append(BrokenRule("the device has NVIDIA's matrix instructions", limits.name, True))
    if problem.x_dtype not in DTYPE_BYTES or problem.y_dtype not in DTYPE_BYTES:
        broken.append(BrokenRule("x and y are fp32, fp16 or bf16", f"{problem.x_dtype}, {problem.y_dtype}"))
    if problem.grouped:
        broken.append(BrokenRule("experts = 1", f"experts = {problem.experts}"))
    if problem.m > MOST_TOKENS:
        broken.append(BrokenRule(f"m <= {MOST_TOKENS}", f"m = {problem.m}"))
    if not broken and (tile.tile_n not in (16 * tile.row_warps, 32 * tile.row_warps) or tile.warps < tile.row_warps):
        rule = "tile_n is 16 or 32 a row warp, warps at least those"
        broken.append(BrokenRule(rule, f"{tile.tile_n}, {tile.row_warps} of {tile.warps}"))
    if tile.split_k < 1:
        broken.append(BrokenRule("split_k >= 1", f"{tile.split_k}"))
    if tile.steps > MOST_STEPS:
        broken.append(BrokenRule("steps <= 2", f"{tile.steps}"))
    if not 1 <= tile.ahead <= MOST_AHEAD:
        broken.append(BrokenRule("1 <= ahead <= 3", f"{tile.ahead}"))
    if tile.registers and not 32 <= tile.registers <= (limits.max_registers_per_thread or tile.registers):
        broken.append(BrokenRule("registers is 0 or 32 to the most a thread has", f"{tile.registers}"))
    if tile.pdl not in (0, 1):
        broken.append(BrokenRule("pdl is 0 or 1", f"{tile.pdl}"))
    elif tile.pdl and limits.kind != "software" and architecture(limits).name not in DEPENDENT_LAUNCH:
        broken.append(BrokenRule("the device has programmatic dependent launch", limits.name, True))
    if tile.direct not in (0, 1) or (tile.direct and (tile.tile_m < COLUMNS or problem.x_dtype not in COPIED)):
        rule = "direct is 0, or 1 for fp16 and bf16 rows, at least 8 a tile"
        broken.append(BrokenRule(rule, f"{tile.direct}, {tile.tile_m} of {problem.x_dtype}"))
    if tile.lean not in (0, 1):
        broken.append(BrokenRule("lean is 0 or 1", f"{tile.lean}"))
    if broken:
        return broken
    whole = arranged(problem)
    if whole.step < LEAST_STEP:
        broken.append(BrokenRule("k is a multiple of 128", f"k = {problem.k}"))
    parts = max((plane.span for plane in whole.scales.planes), default=whole.step) // whole.step
    if stretch(tile) % parts:
        broken.append(BrokenRule("what warps take at once is whole superblocks", f"{stretch(tile)} steps"))
    if (tile.split_k - 1) * stretches(tile, problem) * stretch(tile) >= problem.k // whole.step:
        broken.append(BrokenRule("every part of k has a step", f"split_k = {tile.split_k}, k = {problem.k}"))
    return broken or _fits(tile, problem, limits)


def fits(needed: int, warps: int, registers: int, limits: Limits) -> list[BrokenRule]:
    """What a program of so many shared bytes and warps, of at most so many registers a thread, asks too much of a
    device."""
    broken = []
    at_once = registers * warps * limits.subgroup
    if limits.registers_per_unit and at_once > limits.registers_per_unit:
        rule = "what threads are allowed fits a unit's registers"
        broken.append(BrokenRule(rule, f"{at_once} > {limits.registers_per_unit}", True))
    if limits.shared_bytes and needed > limits.shared_bytes:
        broken.append(BrokenRule("shared bytes fit a program", f"{needed} > {limits.shared_bytes}", True))
    threads = warps * limits.subgroup
    if threads > limits.max_workgroup:
        broken.append(BrokenRule("warps * subgroup <= workgroup limit", f"{threads} > {limits.max_workgroup}", True))
    return broken


def _fits(tile: GemvMmaTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    broken = fits(shared_bytes(tile, problem), tile.warps, tile.registers, limits)
    held = registers_of(tile, problem)
    if limits.max_registers_per_thread and held > limits.max_registers_per_thread:
        rule = "words on their way and sums fit a thread's registers"
        broken.append(BrokenRule(rule, f"{held} > {limits.max_registers_per_thread}", True))
    return broken


def registers_of(tile: GemvMmaTile, problem: Problem) -> int:
    """Registers a thread needs for words on their way, sums and one step of weights, on paper."""
    whole = arranged(problem)
    bits = sum(p.per * p.bits / p.span for p in whole.code_planes)
    rows = tile.tile_n // tile.row_warps
    words = tile.steps * rows * whole.step * bits / 32 / 32
    # Rows of four words a superblock are loaded whole.
    parts = max((plane.span for plane in whole.scales.planes), default=whole.step) // whole.step
    scales = rows / 8 * (4 * max(1, tile.steps // parts) if whole.scales.kind == "k6min" else 2 * tile.steps)
    if whole.scales.kind == "half":
        scales /= 2
    sums = rows * columns(tile) / 32
    decoded = 8 * whole.step / 64 * (columns(tile) + 16) / 16
    # Codes of eight bits become as many registers of weights as they had words.
    if bits >= 8:
        decoded = 0
    both = 10 if rows > 16 else 0
    return int(tile.ahead * (words + scales) + sums + decoded) + both + 34


def margin(problem: Problem) -> int:
    """Registers by which the compiler stays below `registers_of`, where a thread may not have them."""
    bits, more, chunks, *_, groups, _, _, multiplier = parameters(problem)[:11]
    nibbles = bits == 4 and not more and multiplier and groups == chunks
    return NIBBLE_MARGIN if nibbles else PAPER_MARGIN


def allowed_registers(tile: GemvMmaTile, problem: Problem) -> tuple[int, ...]:
    """What a thread may be allowed: the smallest counts that let one more warp in and hold what is needed, on paper and
    by what the compiler saves of that."""
    needed = registers_of(tile, problem)
    found = {
        next((count for count in REGISTER_STEPS if needed <= count + spare), 0)
        for spare in (PAPER_MARGIN, margin(problem))
    }
    return tuple(sorted(found - {0}))
