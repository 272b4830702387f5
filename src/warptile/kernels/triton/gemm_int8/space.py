"""Candidate tiles of `triton.gemm_int8`, and the static table's."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from warptile.contracts import Limits, Problem, UnusableInput
from warptile.kernels.price_model import ceil_div
from warptile.kernels.triton.common import arranged
from warptile.kernels.triton.gemm_int8.price import price
from warptile.kernels.triton.gemm_int8.rules import broken_rules
from warptile.kernels.triton.gemm_int8.tile import GemmInt8Tile

COLUMN_TILES = (8, 16, 32, 64, 128)
ROW_TILES = (16, 32, 64, 128)
STOCK_ROWS = 64
STOCK_WARPS = 8
STOCK_STAGES = (3, 2, 1)


def space(problem: Problem, limits: Limits) -> Iterator[GemmInt8Tile]:
    """Column tiles of 8 to 128 by row tiles of 16 to 128, warps and stages.

    Column tiles beyond the next power of two of m are left out, as are those of an eighth of it or less. Tiles may
    break a rule.
    """
    try:
        step = arranged(problem).step
    except UnusableInput:
        return
    fitting = [c for c in COLUMN_TILES if c < 2 * problem.m and c * 8 > min(problem.m, 256)] or [COLUMN_TILES[0]]
    for tile_m, tile_n, warps, stages in product(fitting, ROW_TILES, (2, 4, 8), (1, 2, 3, 4)):
        if tile_n <= 2 * max(64, problem.n) and tile_n * tile_m >= 32 * warps * 2:
            yield GemmInt8Tile(tile_n, tile_m, step, 8, warps, stages)


def stock(problem: Problem, limits: Limits) -> GemmInt8Tile | None:
    """The first column tile, ascending, with the fewest column tiles that fits shared memory and, on paper, the
    registers; None where none is valid.

    That is the rule llama.cpp's CUDA back end picks its mul_mat_q tile by; rows a tile and stages are fixed.
    """
    try:
        step = arranged(problem).step
    except UnusableInput:
        return None
    best: tuple[bool, int, GemmInt8Tile] | None = None
    for tile_m, stages in product(COLUMN_TILES, STOCK_STAGES):
        tile = GemmInt8Tile(STOCK_ROWS, tile_m, step, 8, STOCK_WARPS, stages)
        if broken_rules(tile, problem, limits):
            continue
        found = (price(tile, problem, limits).spills, ceil_div(problem.m, tile_m), tile)
        if best is None or found[:2] < best[:2]:
            best = found
    return None if best is None else best[2]
