"""When a tile of `vulkan.mul_mm` is valid: its own arithmetic first, then the device, then the problem."""

from __future__ import annotations

from warptile.contracts import BrokenRule, Limits, Problem
from warptile.kernels.price_model import ceil_div, mul_mm_shared_bytes
from warptile.kernels.vulkan.mul_mm.tile import MulMmTile
from warptile.kernels.vulkan.warp_tile import CHUNK, warp_rules

SHARED_TYPES = ("fp16", "fp32")


def broken_rules(tile: MulMmTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """Every rule the tile breaks, each with the numbers that break it; empty when valid."""
    own = arithmetic_rules(tile)
    if any(value < 1 for value in tile.numbers) or tile.shared not in SHARED_TYPES:
        return own
    return own + device_rules(tile, limits) + problem_rules(tile, problem, limits)


def arithmetic_rules(tile: MulMmTile) -> list[BrokenRule]:
    """The rules that hold on any device and problem."""
    broken: list[BrokenRule] = []

    def rule(holds: bool, text: str, numbers: str) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers))

    rule(tile.shared in SHARED_TYPES, "shared is fp16 or fp32", f"shared {tile.shared}")
    rule(tile.accumulator == "fp32", "accumulator is fp32", f"accumulator {tile.accumulator}")
    return warp_rules(tile) + broken


def device_rules(tile: MulMmTile, limits: Limits) -> list[BrokenRule]:
    """The rules a device sets: a tile that breaks only these is valid elsewhere."""
    broken: list[BrokenRule] = []

    def rule(holds: bool, text: str, numbers: str) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers, well_formed=True))

    sizes = limits.subgroup_sizes or (limits.subgroup,)
    rule(
        tile.subgroup in sizes,
        "subgroup is one of the device's sizes",
        f"{tile.subgroup}; the device has {', '.join(map(str, sizes))}",
    )
    rule(
        tile.block_size <= limits.max_workgroup,
        "block_size <= largest workgroup",
        f"{tile.block_size} > {limits.max_workgroup}",
    )
    needed = mul_mm_shared_bytes(tile.tile_n, tile.tile_m, tile.tile_k, tile.shared)
    rule(
        needed <= limits.shared_bytes,
        "shared bytes <= shared bytes of a workgroup",
        f"{needed} > {limits.shared_bytes}",
    )
    if tile.shared == "fp16":
        has = ", ".join(sorted(limits.features)) or "none"
        rule(limits.has("fp16"), "shared fp16 needs feature fp16", f"the device has {has}")
    return broken


def problem_rules(tile: MulMmTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """The rules a problem sets, on this device's grid."""
    broken: list[BrokenRule] = []

    def rule(holds: bool, text: str, numbers: str, well_formed: bool = False) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers, well_formed))

    rule(problem.k % CHUNK == 0, f"k is a multiple of {CHUNK}", f"k {problem.k}")
    rule(problem.experts == 1, "experts = 1: one dense matmul", f"experts {problem.experts}")
    dtypes = f"x {problem.x_dtype}, y {problem.y_dtype}"
    rule(problem.x_dtype == problem.y_dtype == "fp32", "x and y are fp32", dtypes)
    grid = (ceil_div(problem.n, tile.tile_n), ceil_div(problem.m, tile.tile_m))
    for axis, size, most in zip("xy", grid, limits.max_grid, strict=False):
        rule(size <= most, f"grid {axis} <= largest grid {axis}", f"{size} > {most}", well_formed=True)
    return broken
