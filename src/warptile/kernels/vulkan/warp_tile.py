"""The warp tile: llama.cpp's eleven numbers, what follows from them, and the rules that hold on any device."""

from __future__ import annotations

from dataclasses import dataclass

from warptile.contracts import BrokenRule, Limits, Problem, Tile
from warptile.kernels.price_model import ceil_div

WARP_FIELDS = (
    "block_size",
    "tile_n",
    "tile_m",
    "tile_k",
    "warp_n",
    "warp_m",
    "warp_iterations_n",
    "thread_n",
    "thread_m",
    "thread_k",
    "subgroup",
)
CHUNK = 32


@dataclass(frozen=True)
class WarpTile(Tile):
    """A workgroup computes tile_n weight rows by tile_m tokens, tile_k of the reduction a step.

    Its block_size / subgroup warps each own warp_n x warp_m of that, in warp_iterations_n x warp_iterations_m passes of
    a grid of threads that each hold thread_n x thread_m sums. llama.cpp calls these, in order, BLOCK_SIZE, BM, BN, BK,
    WM, WN, WMITER, TM, TN, TK, WARP.
    """

    block_size: int
    tile_n: int
    tile_m: int
    tile_k: int
    warp_n: int
    warp_m: int
    warp_iterations_n: int
    thread_n: int
    thread_m: int
    thread_k: int
    subgroup: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """The eleven numbers in llama.cpp's order."""
        return (
            self.block_size,
            self.tile_n,
            self.tile_m,
            self.tile_k,
            self.warp_n,
            self.warp_m,
            self.warp_iterations_n,
            self.thread_n,
            self.thread_m,
            self.thread_k,
            self.subgroup,
        )

    @property
    def warp_iterations_m(self) -> int:
        """warp_n * warp_m / (subgroup * thread_n * thread_m * warp_iterations_n), rounded down."""
        return (self.warp_n * self.warp_m) // (self.subgroup * self.thread_n * self.thread_m * self.warp_iterations_n)

    @property
    def accumulators(self) -> int:
        """fp32 sums a thread: warp_n * warp_m / subgroup."""
        return (self.warp_n * self.warp_m) // self.subgroup


def warp_rules(tile: WarpTile) -> list[BrokenRule]:
    """The rules between the eleven numbers; with a number below 1, that one alone."""
    broken: list[BrokenRule] = []

    def rule(holds: bool, text: str, numbers: str) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers))

    below = ", ".join(f"{name} {value}" for name, value in zip(WARP_FIELDS, tile.numbers, strict=True) if value < 1)
    rule(not below, "every number of a tile is at least 1", below)
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


def warp_device_rules(tile: WarpTile, shared_bytes: int, limits: Limits) -> list[BrokenRule]:
    """The rules a device sets on a tile that takes `shared_bytes`; one that breaks only these is valid elsewhere."""
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
    rule(
        shared_bytes <= limits.shared_bytes,
        "shared bytes <= shared bytes of a workgroup",
        f"{shared_bytes} > {limits.shared_bytes}",
    )
    return broken


def warp_problem_rules(tile: WarpTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """The rules a problem sets, on this device's grid."""
    broken: list[BrokenRule] = []

    def rule(holds: bool, text: str, numbers: str, well_formed: bool = False) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers, well_formed))

    rule(problem.k % CHUNK == 0, f"k is a multiple of {CHUNK}", f"k {problem.k}")
    rule(not problem.grouped, "experts = 1: one dense matmul", f"experts {problem.experts}")
    dtypes = f"x {problem.x_dtype}, y {problem.y_dtype}"
    rule(problem.x_dtype == problem.y_dtype == "fp32", "x and y are fp32", dtypes)
    grid = (ceil_div(problem.n, tile.tile_n), ceil_div(problem.m, tile.tile_m))
    for axis, size, most in zip("xy", grid, limits.max_grid, strict=False):
        rule(size <= most, f"grid {axis} <= largest grid {axis}", f"{size} > {most}", well_formed=True)
    return broken
