"""When a tile of `vulkan.mul_mm` is valid: its own arithmetic first, then the device, then the problem."""

from __future__ import annotations

from warptile.contracts import BrokenRule, Limits, Problem
from warptile.kernels.price_model import ceil_div, mul_mm_shared_bytes
from warptile.kernels.vulkan.mul_mm.tile import MulMmTile

CHUNK = 32
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

    names = zip(tile.positional, tile.numbers, strict=True)
    below = ", ".join(f"{name} {value}" for name, value in names if value < 1)
    rule(not below, "every number of a tile is at least 1", below)
    rule(tile.shared in SHARED_TYPES, "shared is fp16 or fp32", f"shared {tile.shared}")
    rule(tile.accumulator == "fp32", "accumulator is fp32", f"accumulator {tile.accumulator}")
    if below:
        return broken
    t = tile
    rule(t.tile_k % CHUNK == 0, f"tile_k is a multiple of {CHUNK}", f"tile_k {t.tile_k}")
    rule(t.thread_k == 1, "thread_k = 1: sums are scalar", f"thread_k {t.thread_k}")
    rule(
        t.block_size % t.subgroup == 0,
        "subgroup divides block_size",
        f"block_size {t.block_size}, subgroup {t.subgroup}",
    )
    rule(t.warp_n <= t.tile_n, "warp_n <= tile_n", f"{t.warp_n} > {t.tile_n}")
    rule(t.warp_m <= t.tile_m, "warp_m <= tile_m", f"{t.warp_m} > {t.tile_m}")
    rule(t.tile_n % t.warp_n == 0, "warp_n divides tile_n", f"tile_n {t.tile_n}, warp_n {t.warp_n}")
    rule(t.tile_m % t.warp_m == 0, "warp_m divides tile_m", f"tile_m {t.tile_m}, warp_m {t.warp_m}")
    warps, slots = t.block_size / t.subgroup, (t.tile_n / t.warp_n) * (t.tile_m / t.warp_m)
    rule(
        warps == slots,
        "(tile_n / warp_n) * (tile_m / warp_m) = block_size / subgroup",
        f"({t.tile_n} / {t.warp_n}) * ({t.tile_m} / {t.warp_m}) = {slots:g}, {t.block_size} / {t.subgroup} = {warps:g}",
    )
    area, step = t.warp_n * t.warp_m, t.subgroup * t.thread_n * t.thread_m * t.warp_iterations_n
    rule(
        area % step == 0,
        "warp_iterations_m = warp_n * warp_m / (subgroup * thread_n * thread_m * warp_iterations_n) is whole",
        f"{area} / {step} = {area / step:g}",
    )
    if area % step:
        return broken
    n_step, m_step = t.warp_iterations_n * t.thread_n, t.warp_iterations_m * t.thread_m
    rule(
        t.warp_n % n_step == 0,
        "warp_iterations_n * thread_n divides warp_n",
        f"warp_n {t.warp_n}, {t.warp_iterations_n} * {t.thread_n} = {n_step}",
    )
    rule(
        t.warp_m % m_step == 0,
        "warp_iterations_m * thread_m divides warp_m",
        f"warp_m {t.warp_m}, {t.warp_iterations_m} * {t.thread_m} = {m_step}",
    )
    threads = (t.warp_n // n_step) * (t.warp_m // m_step)
    rule(
        threads == t.subgroup,
        "the threads of a warp cover it exactly: (warp_n / (warp_iterations_n * thread_n)) * "
        "(warp_m / (warp_iterations_m * thread_m)) = subgroup",
        f"{t.warp_n // n_step} * {t.warp_m // m_step} = {threads}, subgroup {t.subgroup}",
    )
    return broken


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
