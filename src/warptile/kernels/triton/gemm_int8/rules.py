"""When a tile of `triton.gemm_int8` is valid."""

from __future__ import annotations

from warptile.contracts import BrokenRule, Limits, Problem
from warptile.kernels.triton.common import arranged, device_rules, powers_of_two, shape_rules, step_bytes
from warptile.kernels.triton.gemm_int8.blocks import blocks_of
from warptile.kernels.triton.gemm_int8.tile import GemmInt8Tile

DTYPE_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}
LEAST_ROWS, LEAST_TOKENS = 16, 8
MOST_SUMS = 1 << 16


def shared_bytes(tile: GemmInt8Tile, problem: Problem) -> int:
    """Shared bytes of a program on paper: codes of x and packed weights in stages - 1 copies, one block of the weights'
    codes on its way, or the tile of sums on its way out if that is more."""
    arrangement = arranged(problem)
    copies = max(1, tile.stages - 1)
    flying = copies * (tile.tile_m * arrangement.step + step_bytes(arrangement, tile.tile_n))
    return max(flying + tile.tile_n * blocks_of(problem).size, 4 * tile.tile_n * tile.tile_m)


def broken_rules(tile: GemmInt8Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """Every rule the tile breaks."""
    broken = shape_rules(problem) or device_rules(limits)
    broken += powers_of_two(tile, ("tile_n", "tile_m", "warps"))
    if problem.x_dtype not in DTYPE_BYTES or problem.y_dtype not in DTYPE_BYTES:
        broken.append(BrokenRule("x and y are fp32, fp16 or bf16", f"{problem.x_dtype}, {problem.y_dtype}"))
    if problem.grouped:
        broken.append(BrokenRule("experts = 1", f"experts = {problem.experts}"))
    if broken:
        return broken
    step = arranged(problem).step
    if tile.tile_k != step:
        broken.append(BrokenRule("tile_k is the step of the weights' arrangement", f"{tile.tile_k} != {step}"))
    if tile.group_m < 1 or tile.stages < 1:
        broken.append(BrokenRule("group_m, stages >= 1", f"{tile.group_m}, {tile.stages}"))
    if tile.tile_n < LEAST_ROWS or tile.tile_m < LEAST_TOKENS:
        broken.append(BrokenRule("tile_n >= 16, tile_m >= 8", f"{tile.tile_n}, {tile.tile_m}"))
    if tile.tile_n * tile.tile_m > MOST_SUMS:
        broken.append(BrokenRule("tile_n * tile_m <= 65536", f"{tile.tile_n} * {tile.tile_m}"))
    if not arranged(problem).layout.has_int8:
        broken.append(BrokenRule("a code less its offset is a signed byte", problem.format))
    if not limits.has("int8"):
        broken.append(BrokenRule("the device multiplies int8", limits.name, True))
    if broken:
        return broken
    needed = shared_bytes(tile, problem)
    if limits.shared_bytes and needed > limits.shared_bytes:
        broken.append(BrokenRule("shared bytes fit a program", f"{needed} > {limits.shared_bytes}", True))
    threads = tile.warps * limits.subgroup
    if threads > limits.max_workgroup:
        broken.append(BrokenRule("warps * subgroup <= workgroup limit", f"{threads} > {limits.max_workgroup}", True))
    return broken
