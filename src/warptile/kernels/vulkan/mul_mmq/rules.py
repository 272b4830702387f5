"""When a tile of `vulkan.mul_mmq` is valid: its own arithmetic first, then the format, the device and the problem."""

from __future__ import annotations

from warptile import formats
from warptile.contracts import BrokenRule, Limits, Problem
from warptile.kernels.vulkan.mul_mmq import trit_loader
from warptile.kernels.vulkan.mul_mmq.staging import shared_bytes
from warptile.kernels.vulkan.mul_mmq.tile import DOTS, LOADERS, SCALES, STAGED, MulMmqTile
from warptile.kernels.vulkan.warp_tile import CHUNK, warp_device_rules, warp_problem_rules, warp_rules
from warptile.layouts import Layout
from warptile.layouts.trits import TritPlane


def broken_rules(tile: MulMmqTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """Every rule the tile breaks, each with the numbers that break it; empty when valid."""
    own = arithmetic_rules(tile)
    if any(value < 1 for value in (*tile.numbers, tile.bk_step)) or _unknown_names(tile):
        return own
    layout = formats.by_name(problem.format).layout
    of_device = warp_device_rules(tile, shared_bytes(tile, problem.format), limits)
    if tile.dot == "int_dot" and not limits.has("int_dot"):
        has = ", ".join(sorted(limits.features)) or "none"
        of_device.append(BrokenRule("dot int_dot needs feature int_dot", f"the device has {has}", well_formed=True))
    return own + layout_rules(tile, problem.format, layout) + of_device + warp_problem_rules(tile, problem, limits)


def arithmetic_rules(tile: MulMmqTile) -> list[BrokenRule]:
    """The rules that hold on any device, format and problem."""
    broken = warp_rules(tile) + _unknown_names(tile)
    if tile.bk_step < 1:
        broken.append(BrokenRule("bk_step is at least 1", f"bk_step {tile.bk_step}"))
    if tile.tile_k != CHUNK:
        broken.append(BrokenRule(f"tile_k = {CHUNK}: bk_step counts chunks", f"tile_k {tile.tile_k}"))
    return broken


def layout_rules(tile: MulMmqTile, format_name: str, layout: Layout) -> list[BrokenRule]:
    """The rules a format's layout sets."""
    broken: list[BrokenRule] = []
    if not layout.has_int8:
        broken.append(BrokenRule("codes less their offset are signed bytes", f"{format_name} is {layout.name}"))
    if tile.loader == "chunk":
        return broken
    plane = layout.codes
    if not isinstance(plane, TritPlane):
        broken.append(BrokenRule(f"loader {tile.loader} unpacks base-3 blocks", f"{format_name} is {layout.name}"))
        return broken
    if tile.staged != "int8":
        broken.append(BrokenRule(f"loader {tile.loader} stages int8", f"staged {tile.staged}"))
    chunks = trit_loader.block_chunks(plane)
    if tile.bk_step % chunks:
        broken.append(
            BrokenRule(
                f"loader {tile.loader} takes whole blocks: bk_step is a multiple of {chunks}", f"bk_step {tile.bk_step}"
            )
        )
    return broken


def _unknown_names(tile: MulMmqTile) -> list[BrokenRule]:
    known = (("dot", tile.dot, DOTS), ("staged", tile.staged, STAGED), ("scales", tile.scales, SCALES))
    return [
        BrokenRule(f"{name} is one of {', '.join(values)}", f"{name} {value}")
        for name, value, values in (*known, ("loader", tile.loader, LOADERS))
        if value not in values
    ]
