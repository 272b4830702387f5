"""When a tile of `vulkan.mul_mm_coop` is valid: its own arithmetic first, then the device, then the problem."""

from __future__ import annotations

from warptile import formats
from warptile.contracts import BrokenRule, Limits, Problem
from warptile.kernels.vulkan.mul_mm_coop import shared
from warptile.kernels.vulkan.mul_mm_coop.device_rules import device_rules
from warptile.kernels.vulkan.mul_mm_coop.int8 import rules as int8_rules
from warptile.kernels.vulkan.mul_mm_coop.source import decodes_nibbles, features
from warptile.kernels.vulkan.mul_mm_coop.tile import CHUNK, MulMmCoopTile

WORDS = {
    "operands": ("fp16", "int8"),
    "weights": ("block", "warp", "registers"),
    "activations": ("shared",),
    "accumulator": ("fp32", "fp16"),
    "decode": ("fp32", "fp16", "subnormal"),
    "first": ("n", "m"),
    "scales": ("decoded",),
}
MOST_ACCUMULATORS = 256
REGISTER_MATRIX = (16, 16, 16)
# Beyond this many additions a sum of fp16 has no error bound.
FP16_ADDITIONS = 2000


def broken_rules(tile: MulMmCoopTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """Every rule the tile breaks, each with the numbers that break it; empty when valid."""
    if tile.operands == "int8":
        return int8_rules.broken_rules(tile, problem, limits)
    own = arithmetic_rules(tile)
    if own:
        return own
    ordered = "weights in registers" if tile.weights == "registers" else ""
    types, needed = ("fp16", tile.accumulator), shared.for_problem(tile, problem)
    of_device = device_rules(tile, limits, features(problem), types, needed, ordered)
    return of_device + problem_rules(tile, problem, limits)


def arithmetic_rules(tile: MulMmCoopTile) -> list[BrokenRule]:
    """The rules that hold on any device and problem."""
    broken: list[BrokenRule] = []

    def rule(holds: bool, text: str, numbers: str) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers))

    fields = tile.fields()
    for name, words in WORDS.items():
        rule(fields[name] in words, f"{name} is {' or '.join(words)}", f"{name} {fields[name]}")
    counts = ("warps_n", "warps_m", "matrices_n", "matrices_m", "k_chunk", "split_k", "subgroup")
    below = ", ".join(f"{name} {fields[name]}" for name in counts if int(fields[name]) < 1)
    rule(not below, "every count of a tile is at least 1", below)
    rule(min(tile.matrix_sides) > 0, "matrix is MxNxK", f"matrix {tile.matrix}")
    rule(tile.buffers in (1, 2), "buffers is 1 or 2", f"{tile.buffers}")
    rule(tile.prefetch >= 0, "prefetch >= 0", f"{tile.prefetch}")
    whole = (tile.x_block, tile.pad) == (0, 16)
    rule(whole, "x_block is 0 and pad 16 where operands are fp16", f"{tile.x_block}, {tile.pad}")
    if broken:
        return broken
    m, n, k = tile.matrix_sides
    area = m * n
    rule(tile.k_chunk % CHUNK == 0, f"k_chunk is a multiple of {CHUNK}", f"k_chunk {tile.k_chunk}")
    rule(tile.k_chunk % k == 0, "the matrix's k divides k_chunk", f"k_chunk {tile.k_chunk}, matrix {tile.matrix}")
    rule(k % 8 == 0 and n % 4 == 0, "the matrix's k is a multiple of 8, its n of 4", f"matrix {tile.matrix}")
    rule(area % tile.subgroup == 0, "a warp's lanes divide a matrix", f"{area} % {tile.subgroup}")
    rule(
        tile.accumulators <= MOST_ACCUMULATORS,
        f"matrices_n * matrices_m * m * n / subgroup <= {MOST_ACCUMULATORS} sums a thread",
        f"{tile.accumulators}",
    )
    if tile.weights == "registers":
        rule(tile.matrix_sides == REGISTER_MATRIX, "weights in registers: matrix is 16x16x16", tile.matrix)
        rule(tile.subgroup == 32, "weights in registers: subgroup is 32", f"{tile.subgroup}")
        rule(tile.matrices_n % 2 == 0, "weights in registers: matrices_n is even", f"{tile.matrices_n}")
        rule(tile.decode != "fp32", "weights in registers: decode is fp16 or subnormal", tile.decode)
        steps, depth = tile.k_chunk // CHUNK, max(1, tile.prefetch)
        rule(steps % depth == 0, "weights in registers: prefetch divides k_chunk / 32", f"{steps} % {depth}")
    else:
        rule(tile.prefetch <= 1, "weights in shared memory: prefetch is 0 or 1", f"{tile.prefetch}")
        rule(tile.decode != "subnormal", "weights in shared memory: decode is fp32 or fp16", tile.decode)
    if tile.decode == "subnormal":
        rule(tile.accumulator == "fp32", "decode subnormal: accumulator is fp32", tile.accumulator)
    return broken


def problem_rules(tile: MulMmCoopTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """The rules a problem sets, on this device's grid."""
    broken: list[BrokenRule] = []

    def rule(holds: bool, text: str, numbers: str, well_formed: bool = False) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers, well_formed))

    rule(problem.k % CHUNK == 0, f"k is a multiple of {CHUNK}", f"k {problem.k}")
    rule(not problem.grouped, "experts = 1: one dense matmul", f"experts {problem.experts}")
    if tile.decode == "subnormal":
        layout = formats.by_name(problem.format).layout
        lies = decodes_nibbles(layout)
        rule(lies, "decode subnormal: codes of 4 bits on a line", f"{problem.format} is {layout.name}")
    if tile.weights == "registers":
        rule(problem.n % 4 == 0, "weights in registers: n is a multiple of 4", f"n {problem.n}")
    steps = -(-problem.k // tile.k_chunk)
    taken = -(-steps // -(-steps // tile.split_k))
    rule(taken == tile.split_k, "every part of k has a step", f"{steps} steps in {tile.split_k} parts fill {taken}")
    if tile.accumulator == "fp16":
        additions = min(problem.k, tile.part_k(problem.k))
        rule(
            additions <= FP16_ADDITIONS,
            f"accumulator fp16: at most {FP16_ADDITIONS} additions have an error bound",
            f"{additions}",
        )
    for axis, size, most in zip("xyz", tile.grid(problem.n, problem.m), limits.max_grid, strict=True):
        rule(size <= most, f"grid {axis} <= largest grid {axis}", f"{size} > {most}", True)
    return broken
