"""When a tile of int8 operands is valid: its own arithmetic first, then the layout, the device and the problem."""

from __future__ import annotations

from warptile import formats
from warptile.contracts import BrokenRule, Limits, Problem
from warptile.kernels.vulkan.mul_mm_coop.device_rules import device_rules, listed_matrices
from warptile.kernels.vulkan.mul_mm_coop.int8 import source
from warptile.kernels.vulkan.mul_mm_coop.int8.plan import X_BLOCKS, Plan
from warptile.kernels.vulkan.mul_mm_coop.tile import CHUNK, MulMmCoopTile
from warptile.layouts import Layout

WORDS = {
    "weights": ("block", "warp"),
    "activations": ("shared", "private"),
    "accumulator": ("fp32",),
    "decode": ("fp32", "fp16"),
    "first": ("n", "m"),
    "scales": ("raw", "broadcast", "lanes"),
}
K_CHUNKS = (32, 64, 128, 256)
PADS = (0, 16)
MOST_ACCUMULATORS = 128
LANES_MATRIX = (16, 16)


def broken_rules(tile: MulMmCoopTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """Every rule the tile breaks, each with the numbers that break it; empty when valid."""
    own = arithmetic_rules(tile)
    if own:
        return own
    layout = formats.by_name(problem.format).layout
    of_layout = layout_rules(tile, problem.format, layout)
    if of_layout:
        return of_layout
    plan = Plan.of(tile, layout)
    return _device_rules(plan, problem, limits) + problem_rules(plan, problem, limits)


def arithmetic_rules(tile: MulMmCoopTile) -> list[BrokenRule]:
    """The rules that hold on any device, format and problem."""
    broken: list[BrokenRule] = []

    def rule(holds: bool, text: str, numbers: str) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers))

    fields = tile.fields()
    for name, words in WORDS.items():
        rule(fields[name] in words, f"int8: {name} is {' or '.join(words)}", f"{name} {fields[name]}")
    for name, allowed in (("k_chunk", K_CHUNKS), ("x_block", X_BLOCKS), ("pad", PADS), ("buffers", (1,))):
        listed = ", ".join(map(str, allowed))
        rule(fields[name] in allowed, f"int8: {name} is one of {listed}", f"{name} {fields[name]}")
    counts = ("warps_n", "warps_m", "matrices_n", "matrices_m", "split_k", "subgroup")
    below = ", ".join(f"{name} {fields[name]}" for name in counts if int(fields[name]) < 1)
    rule(not below, "every count of a tile is at least 1", below)
    rule(min(tile.matrix_sides) > 0, "matrix is MxNxK", f"matrix {tile.matrix}")
    rule(tile.prefetch in (0, 1), "int8: prefetch is 0 or 1", f"{tile.prefetch}")
    if broken:
        return broken
    m, n, k = tile.matrix_sides
    rule(k in (8, 16, 32), "int8: the matrix's k is 8, 16 or 32", f"matrix {tile.matrix}")
    rule(n % 8 == 0 and m % 8 == 0, "int8: the matrix's m and n are multiples of 8", f"matrix {tile.matrix}")
    rule(m * n % tile.subgroup == 0, "a warp's lanes divide a matrix", f"{m * n} % {tile.subgroup}")
    rule(
        tile.accumulators <= MOST_ACCUMULATORS,
        f"int8: matrices_n * matrices_m * m * n / subgroup <= {MOST_ACCUMULATORS} sums a thread, kept twice",
        f"{tile.accumulators}",
    )
    wanted = "fp32" if tile.scales == "raw" else "fp16"
    rule(tile.decode == wanted, f"int8: with scales {tile.scales} minimums are {wanted}: decode", tile.decode)
    if tile.scales == "raw":
        rule(tile.subgroup % n == 0, "scales raw: a matrix's n divides the subgroup", f"{tile.subgroup} % {n}")
    if tile.scales == "lanes":
        rule((m, n) == LANES_MATRIX and tile.subgroup == 32, "scales lanes: 16x16 in subgroups of 32", tile.matrix)
    return broken


def layout_rules(tile: MulMmCoopTile, format_name: str, layout: Layout) -> list[BrokenRule]:
    """The rules a format's layout sets."""
    broken: list[BrokenRule] = []
    if not layout.has_int8:
        broken.append(BrokenRule("codes less their offset are signed bytes", f"{format_name} is {layout.name}"))
    group, k = layout.scales.group, tile.matrix_sides[2]
    if group < 16 or (group % k and (group, k) != (16, 32)):
        broken.append(BrokenRule("a group of weights is whole matrices, or half of one of k = 32", f"{group}, k {k}"))
    return broken


def _device_rules(plan: Plan, problem: Problem, limits: Limits) -> list[BrokenRule]:
    tile = plan.tile
    ordered = "scales lanes" if tile.scales == "lanes" else ""
    needs = source.features(plan, problem)
    broken = device_rules(tile, limits, needs, ("s8", "s32"), plan.shared_bytes(), ordered)
    if plan.columns and source.minimum_k(tile, limits) <= 0:
        rule = "minimums are multiplied on fp16 matrices of the same m and n with fp32 sums"
        m, n, _ = tile.matrix_sides
        broken.append(BrokenRule(rule, f"{m}x{n}; it lists {listed_matrices(limits)}", well_formed=True))
    return broken


def problem_rules(plan: Plan, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """The rules a problem sets, on this device's grid and buffers."""
    broken: list[BrokenRule] = []
    tile = plan.tile

    def rule(holds: bool, text: str, numbers: str, well_formed: bool = False) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers, well_formed))

    rule(problem.k % CHUNK == 0, f"k is a multiple of {CHUNK}", f"k {problem.k}")
    rule(problem.k % tile.x_block == 0, "x_block divides k", f"{problem.k} % {tile.x_block}")
    rule(not problem.grouped, "experts = 1: one dense matmul", f"experts {problem.experts}")
    steps = -(-problem.k // plan.step)
    taken = -(-steps // -(-steps // tile.split_k))
    rule(taken == tile.split_k, "every part of k has a step", f"{steps} steps in {tile.split_k} parts fill {taken}")
    nbytes = 4 * plan.scratch_words(problem)[2]
    rule(nbytes <= limits.max_buffer_bytes, "quantized x fits a buffer", f"{nbytes} > {limits.max_buffer_bytes}", True)
    for axis, size, most in zip("xyz", tile.grid(problem.n, problem.m), limits.max_grid, strict=True):
        rule(size <= most, f"grid {axis} <= largest grid {axis}", f"{size} > {most}", True)
    return broken
