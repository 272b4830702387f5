"""Candidate tiles of `triton.gemm_id`, and the static table's."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from warptile.contracts import Limits, Problem, UnusableInput
from warptile.kernels.triton.common import OPERANDS, arranged
from warptile.kernels.triton.gemm.rules import LEAST_SIDE
from warptile.kernels.triton.gemm_id.rules import broken_rules
from warptile.kernels.triton.gemm_id.tile import GemmIdTile
from warptile.kernels.triton.matrix import architecture
from warptile.workloads.experts import expected_tiles

ROW_TILES = (8, 16, 32, 64, 128)
STOCK_ROWS = 64
MOST_ALONE = 512


def space(problem: Problem, limits: Limits) -> Iterator[GemmIdTile]:
    """Sorted: row tiles around the mean group that has a row, each with and without a tail of a quarter, by weight
    rows, spans, warps and stages. Up to 512 slots also rows alone, by parts of k. Tiles may break a rule."""
    try:
        step = arranged(problem).step
    except UnusableInput:
        return
    operand = OPERANDS.get(problem.x_dtype, "fp16")
    least_n = architecture(limits).least_n
    if problem.slots <= MOST_ALONE:
        for tile_n, steps, warps, stages in product((16, 32), (1, 2, 4, 8), (1, 2, 4, 8), (2, 3, 4)):
            yield GemmIdTile(tile_n, LEAST_SIDE, step, "slots", 0, 1, steps, warps, stages, operand)
    _, touched = expected_tiles(problem, 1)
    mean = problem.slots / max(1.0, touched)
    rows = [t for t in ROW_TILES if t < 4 * mean and t * 8 > mean] or [ROW_TILES[0]]
    sides = product(rows, (least_n, 2 * least_n), (1, 4), (4, 8), (2, 3, 4))
    for tile_m, tile_n, span, warps, stages in sides:
        for tail in (0, tile_m // 4):
            if tail == 0 or tail >= LEAST_SIDE:
                yield GemmIdTile(tile_n, tile_m, step, "sorted", tail, span, 1, warps, stages, operand)


def stock(problem: Problem, limits: Limits) -> GemmIdTile | None:
    """The smallest row tile that holds the mean group, as a static table of group sizes would have it; None where none
    is valid."""
    try:
        step = arranged(problem).step
    except UnusableInput:
        return None
    operand = OPERANDS.get(problem.x_dtype, "fp16")
    mean = problem.slots / problem.experts
    for tile_m in sorted(ROW_TILES, key=lambda t: (t < mean, abs(t - mean))):
        for stages in (4, 3, 2):
            tile = GemmIdTile(STOCK_ROWS, tile_m, step, "sorted", 0, 1, 1, 4, stages, operand)
            if not broken_rules(tile, problem, limits):
                return tile
    return None
