"""When a tile of `triton.gemm_id` is valid."""

from __future__ import annotations

from warptile.contracts import BrokenRule, Limits, Problem
from warptile.kernels.triton.common import arranged, device_rules, powers_of_two, shape_rules, step_bytes
from warptile.kernels.triton.gemm.rules import DECODES, DTYPE_BYTES, LEAST_SIDE, MOST_SUMS, OPERANDS, shared_bytes
from warptile.kernels.triton.gemm.tile import GemmTile
from warptile.kernels.triton.gemm_id.tile import GemmIdTile

ORDERS = ("sorted", "slots")
MOST_EXPERTS = 510
MOST_SLOTS = 1 << 24
# Of a step: more are spilled.
MOST_WEIGHTS = 128
MOST_STRIDE = (1 << 31) - 1


def slots_together(problem: Problem) -> int:
    """Slots that a program of "slots" takes at once: all of a token's, rounded up to a power of two, where y is summed;
    0: one."""
    return 1 << (problem.top_k - 1).bit_length() if problem.summed else 0


def batch(tile: GemmIdTile, problem: Problem) -> int:
    """Products that a program computes side by side: 1 where rows are sorted."""
    return max(1, slots_together(problem)) * tile.steps if tile.order == "slots" else 1


def shared_bytes_of(tile: GemmIdTile, problem: Problem, limits: Limits) -> int:
    """Shared bytes of a program: as of `triton.gemm`, or, of rows alone, stages - 1 copies of activations (tile_m rows
    each, of which one is not 0) and weights."""
    if tile.order == "sorted":
        dense = GemmTile(
            tile.tile_n, tile.tile_m, tile.tile_k, 1, 1, tile.warps, tile.stages, tile.operand, tile.decode
        )
        return shared_bytes(dense, problem, limits)
    each = tile.tile_m * tile.tile_k * DTYPE_BYTES[problem.x_dtype] + step_bytes(arranged(problem), tile.tile_n)
    copies = batch(tile, problem) * each
    if tile.operand != problem.x_dtype:
        copies += batch(tile, problem) * tile.tile_m * tile.tile_k * 4
    return max(1, tile.stages - 1) * copies


def broken_rules(tile: GemmIdTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """Every rule the tile breaks."""
    broken = shape_rules(problem) or device_rules(limits)
    broken += powers_of_two(tile, ("tile_n", "tile_m", "steps", "warps"))
    words = (("operand", OPERANDS), ("decode", DECODES), ("order", ORDERS))
    for field, known in words:
        if (value := tile.fields()[field]) not in known:
            broken.append(BrokenRule(f"{field} is one of {', '.join(known)}", str(value)))
    if problem.x_dtype not in DTYPE_BYTES or problem.y_dtype not in DTYPE_BYTES:
        broken.append(BrokenRule("x and y are fp32, fp16 or bf16", f"{problem.x_dtype}, {problem.y_dtype}"))
    if not problem.grouped:
        broken.append(BrokenRule("the problem has experts", "experts = 1"))
    if problem.experts > MOST_EXPERTS:
        broken.append(BrokenRule(f"experts <= {MOST_EXPERTS}", f"{problem.experts}"))
    if problem.slots > MOST_SLOTS:
        broken.append(BrokenRule(f"m * top_k <= {MOST_SLOTS}", f"{problem.slots}"))
    if broken:
        return broken
    step = arranged(problem).step
    if tile.tile_k != step:
        broken.append(BrokenRule("tile_k is the step of the weights' arrangement", f"{tile.tile_k} != {step}"))
    elif tile.steps > problem.k // step:
        broken.append(BrokenRule("steps <= k / tile_k", f"{tile.steps} > {problem.k} / {step}"))
    if tile.order == "sorted" and tile.steps > 1:
        broken.append(BrokenRule("steps = 1 where rows are sorted", f"{tile.steps}"))
    if tile.order == "slots" and (tile.tile_m != LEAST_SIDE or tile.tail or tile.span != 1):
        numbers = f"{tile.tile_m}, {tile.tail}, {tile.span}"
        broken.append(BrokenRule("tile_m = 8, tail = 0, span = 1 for rows alone", numbers))
    sums = batch(tile, problem) * tile.tile_n * tile.tile_k // (tile.warps * limits.subgroup)
    if tile.order == "slots" and sums > MOST_WEIGHTS:
        broken.append(BrokenRule(f"weights a thread <= {MOST_WEIGHTS}", f"{sums}"))
    if tile.tail and (tile.tail < LEAST_SIDE or tile.tail & (tile.tail - 1) or tile.tail >= tile.tile_m):
        broken.append(BrokenRule("tail is 0, or a power of two from 8 to tile_m / 2", f"{tile.tail}"))
    if tile.stages < 1 or tile.span < 1:
        broken.append(BrokenRule("stages, span >= 1", f"{tile.stages}, {tile.span}"))
    if tile.tile_n < 16 or tile.tile_m < LEAST_SIDE:
        broken.append(BrokenRule("tile_n >= 16, tile_m >= 8", f"{tile.tile_n}, {tile.tile_m}"))
    if tile.tile_n * tile.tile_m > MOST_SUMS:
        broken.append(BrokenRule("tile_n * tile_m <= 65536", f"{tile.tile_n} * {tile.tile_m}"))
    if problem.x_dtype == "bf16" and tile.operand == "fp16":
        broken.append(BrokenRule("fp16 holds the range of x", "x is bf16"))
    stride = arranged(problem).offsets(problem.n)[1]
    if stride > MOST_STRIDE:
        broken.append(BrokenRule("words of an expert < 2^31", f"{stride}"))
    return broken or _fits(tile, problem, limits)


def _fits(tile: GemmIdTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    broken = []
    needed = shared_bytes_of(tile, problem, limits)
    if limits.shared_bytes and needed > limits.shared_bytes:
        broken.append(BrokenRule("shared bytes fit a program", f"{needed} > {limits.shared_bytes}", True))
    threads = tile.warps * limits.subgroup
    if threads > limits.max_workgroup:
        broken.append(BrokenRule("warps * subgroup <= workgroup limit", f"{threads} > {limits.max_workgroup}", True))
    return broken
