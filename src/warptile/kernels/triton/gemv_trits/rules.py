"""When a tile of `triton.gemv_trits` is valid, and what it takes."""

from __future__ import annotations

from warptile.contracts import BrokenRule, Limits, Problem
from warptile.kernels.price_model import ceil_div
from warptile.kernels.triton.common import arranged, device_rules, parameters, powers_of_two, shape_rules
from warptile.kernels.triton.gemv_mma.rules import DEPENDENT_LAUNCH, fits
from warptile.kernels.triton.gemv_trits.tile import GemvTritsTile
from warptile.kernels.triton.matrix import architecture, is_nvidia

MOST_TOKENS = 2
STEP = 128
"""Elements of a block."""
STAGES = (16, 8, 2)
"""Base-3 bytes of a block that the kernel is written for, of five, five and four digits; an fp16 scale follows."""
ROW_WARPS = (1, 2, 4, 8, 16)
STEPS = (1, 2, 4)
MOST_AHEAD = 2
OPERANDS = ("fp16", "bf16")
STAGED_BYTES = 3 * 8 * 4 * 4 * 4 + 2 * 4
"""Of a step: three times four words a lane of eight columns, and what a unit counts for two tokens."""
UPPER_BYTES = 5 * 4 * 4 * 4 * 4
"""Of a step and token with `upper`: five times four words a lane of four columns."""


def stretch(tile: GemvTritsTile) -> int:
    """Steps that all warps of a program take at once."""
    return tile.warps // tile.row_warps * tile.steps


def stretches(tile: GemvTritsTile, problem: Problem) -> int:
    """How often each warp of a program takes its steps."""
    return ceil_div(ceil_div(problem.k // STEP, tile.split_k), stretch(tile))


def staged_steps(tile: GemvTritsTile, problem: Problem) -> int:
    """Steps of x that a program has room for: a power of two."""
    return 1 << (stretches(tile, problem) * stretch(tile) - 1).bit_length()


def full(tile: GemvTritsTile, problem: Problem) -> bool:
    """Whether every warp has all its steps at any time, so that no load need ask."""
    return problem.k // STEP == tile.split_k * stretches(tile, problem) * stretch(tile)


def shared_bytes(tile: GemvTritsTile, problem: Problem) -> int:
    """Shared bytes of a program: its part of x; sums on their way from warp to warp are fewer."""
    if tile.upper:
        return staged_steps(tile, problem) * (tile.tile_m * UPPER_BYTES + 2 * 4)
    return staged_steps(tile, problem) * STAGED_BYTES


def registers_of(tile: GemvTritsTile) -> int:
    """Registers a thread needs for words on their way, sums, a block's words and those of x, on paper."""
    block = 36 + 18 + 20 if tile.upper else 20 + 10 + 24
    return tile.ahead * tile.steps * 6 + tile.steps * 4 + block


def broken_rules(tile: GemvTritsTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """Every rule the tile breaks."""
    broken = shape_rules(problem) or device_rules(limits)
    broken += powers_of_two(tile, ("row_warps", "tile_m", "split_k", "warps", "steps"))
    if not is_nvidia(limits) and limits.kind != "software":
        broken.append(BrokenRule("the device has NVIDIA's int8 matrix instructions", limits.name, True))
    if problem.x_dtype not in OPERANDS or problem.y_dtype not in ("fp32", *OPERANDS):
        broken.append(BrokenRule("x is fp16 or bf16", f"{problem.x_dtype}, {problem.y_dtype}"))
    if problem.grouped:
        broken.append(BrokenRule("experts = 1", f"experts = {problem.experts}"))
    if problem.m > MOST_TOKENS or tile.tile_m > MOST_TOKENS:
        broken.append(BrokenRule(f"m, tile_m <= {MOST_TOKENS}", f"{problem.m}, {tile.tile_m}"))
    if tile.row_warps not in ROW_WARPS or tile.warps < tile.row_warps:
        broken.append(BrokenRule("row_warps is at most 16 and at most warps", f"{tile.row_warps} of {tile.warps}"))
    if tile.steps not in STEPS or not 1 <= tile.ahead <= MOST_AHEAD:
        broken.append(BrokenRule("steps is 1, 2 or 4, ahead 1 or 2", f"{tile.steps}, {tile.ahead}"))
    if tile.registers and not 32 <= tile.registers <= (limits.max_registers_per_thread or tile.registers):
        broken.append(BrokenRule("registers is 0 or 32 to the most a thread has", f"{tile.registers}"))
    if tile.upper not in (0, 1):
        broken.append(BrokenRule("upper is 0 or 1", f"{tile.upper}"))
    if tile.pdl not in (0, 1):
        broken.append(BrokenRule("pdl is 0 or 1", f"{tile.pdl}"))
    elif tile.pdl and limits.kind != "software" and architecture(limits).name not in DEPENDENT_LAUNCH:
        broken.append(BrokenRule("the device has programmatic dependent launch", limits.name, True))
    if broken:
        return broken
    if arranged(problem).step != STEP or parameters(problem)[3:6] != STAGES:
        broken.append(BrokenRule("weights are base-3 bytes in blocks of 128", problem.format))
    elif (tile.split_k - 1) * stretches(tile, problem) * stretch(tile) >= problem.k // STEP:
        broken.append(BrokenRule("every part of k has a step", f"split_k = {tile.split_k}, k = {problem.k}"))
    return broken or fits(shared_bytes(tile, problem), tile.warps, tile.registers, limits)
