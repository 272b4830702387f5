"""When a tile of `triton.gemm_id` is valid."""

from __future__ import annotations

from warptile.contracts import BrokenRule, Limits, Problem
from warptile.kernels.triton.common import arranged, device_rules, powers_of_two, shape_rules
from warptile.kernels.triton.gemm.rules import DECODES, DTYPE_BYTES, LEAST_SIDE, MOST_SUMS, OPERANDS, shared_bytes
from warptile.kernels.triton.gemm.tile import GemmTile
from warptile.kernels.triton.gemm_id.tile import GemmIdTile

ORDERS = ("sorted", "slots")
MOST_EXPERTS = 510
MOST_SLOTS = 1 << 24
MOST_STRIDE = (1 << 31) - 1


def dense_tile(tile: GemmIdTile) -> GemmTile:
    """The tile of `triton.gemm` that a program of this one computes like."""
    return GemmTile(
        tile.tile_n, tile.tile_m, tile.tile_k, tile.split_k, 1, tile.warps, tile.stages, tile.operand, tile.decode
    )


def broken_rules(tile: GemmIdTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """Every rule the tile breaks."""
    broken = shape_rules(problem) or device_rules(limits)
    broken += powers_of_two(tile, ("tile_n", "tile_m", "split_k", "warps"))
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
    elif tile.split_k > problem.k // step:
        broken.append(BrokenRule("split_k <= k / tile_k", f"{tile.split_k} > {problem.k} / {step}"))
    if tile.order == "sorted" and tile.split_k > 1:
        broken.append(BrokenRule("split_k = 1 where rows are sorted", f"{tile.split_k}"))
    if tile.order == "slots" and (tile.tile_m != LEAST_SIDE or tile.tail):
        broken.append(BrokenRule("tile_m = 8 and tail = 0 for rows alone", f"{tile.tile_m}, {tile.tail}"))
    if tile.tail and (tile.tail < LEAST_SIDE or tile.tail & (tile.tail - 1) or tile.tail >= tile.tile_m):
        broken.append(BrokenRule("tail is 0, or a power of two from 8 to tile_m / 2", f"{tile.tail}"))
    if tile.stages < 1:
        broken.append(BrokenRule("stages >= 1", f"{tile.stages}"))
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
    needed = shared_bytes(dense_tile(tile), problem, limits)
    if limits.shared_bytes and needed > limits.shared_bytes:
        broken.append(BrokenRule("shared bytes fit a program", f"{needed} > {limits.shared_bytes}", True))
    threads = tile.warps * limits.subgroup
    if threads > limits.max_workgroup:
        broken.append(BrokenRule("warps * subgroup <= workgroup limit", f"{threads} > {limits.max_workgroup}", True))
    return broken
