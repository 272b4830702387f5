"""When a tile of `vulkan.mul_mm` is valid: its own arithmetic first, then the device, then the problem."""

from __future__ import annotations

from warptile.contracts import BrokenRule, Limits, Problem
from warptile.kernels.price_model import mul_mm_shared_bytes
from warptile.kernels.vulkan.mul_mm.tile import MulMmTile
from warptile.kernels.vulkan.warp_tile import warp_device_rules, warp_problem_rules, warp_rules

SHARED_TYPES = ("fp16", "fp32")


def broken_rules(tile: MulMmTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """Every rule the tile breaks, each with the numbers that break it; empty when valid."""
    own = arithmetic_rules(tile)
    if any(value < 1 for value in tile.numbers) or tile.shared not in SHARED_TYPES:
        return own
    return own + device_rules(tile, limits) + warp_problem_rules(tile, problem, limits)


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
    needed = mul_mm_shared_bytes(tile.tile_n, tile.tile_m, tile.tile_k, tile.shared)
    broken = warp_device_rules(tile, needed, limits)
    if tile.shared == "fp16":
        has = ", ".join(sorted(limits.features)) or "none"
        if not limits.has("fp16"):
            broken.append(BrokenRule("shared fp16 needs feature fp16", f"the device has {has}", well_formed=True))
    return broken
