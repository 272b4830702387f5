"""Candidate tiles of `triton.gemm`, and the static table's."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from warptile.contracts import Limits, Problem, UnusableInput
from warptile.kernels.price_model import ceil_div
from warptile.kernels.triton import waves
from warptile.kernels.triton.common import OPERANDS, arranged
from warptile.kernels.triton.gemm.price import price
from warptile.kernels.triton.gemm.rules import broken_rules
from warptile.kernels.triton.gemm.tile import GemmTile
from warptile.kernels.triton.matrix import architecture

COLUMN_TILES = (8, 16, 32, 64, 128)
LARGE_COLUMN_TILES = (256,)
STOCK_SHARES = ((64, 4), (64, 8), (32, 8), (32, 4))
"""(rows, warps) of a stock tile: the first whose sums and fragments fit the registers."""
STOCK_STAGES = (4, 3, 2)


def space(problem: Problem, limits: Limits) -> Iterator[GemmTile]:
    """Column tiles of 8 to 128 (256 for many tokens) by row tiles, splits along k, warps and stages.

    Column tiles beyond the next power of two of m are left out, as are those of an eighth of it or less (AMD: of a
    sixteenth), and splits that make more than 16 programs a unit. Tiles may break a rule.
    """
    try:
        step = arranged(problem).step
    except UnusableInput:
        return
    operand = OPERANDS.get(problem.x_dtype, "fp16")
    units = limits.units or 1
    least_n = architecture(limits).least_n
    columns = COLUMN_TILES + (LARGE_COLUMN_TILES if problem.m >= 512 else ())
    # AMD's instructions have 16 columns at least, and the registers of RDNA3 hold few of them.
    amd = waves.is_amd(limits)
    most, share = (2 * max(problem.m, waves.SIDE), 16) if amd else (2 * problem.m, 8)
    fitting = [c for c in columns if c < most and c * share > min(problem.m, 256)] or [COLUMN_TILES[0]]
    for tile_m, tile_n, warps, stages in product(fitting, (least_n, 2 * least_n, 4 * least_n), (4, 8), (2, 3, 4, 5)):
        if tile_n > 2 * max(64, problem.n) or tile_n > 256:
            continue
        tiles = ceil_div(problem.n, tile_n) * ceil_div(problem.m, tile_m)
        for split in (1, 2, 4, 8, 16):
            if split > 1 and (tiles * split > 16 * units or tiles * split // 2 > 4 * units):
                break
            yield GemmTile(tile_n, tile_m, step, split, 8, warps, stages, operand)


def stock(problem: Problem, limits: Limits) -> GemmTile | None:
    """The first column tile, ascending, with the fewest column tiles that fits shared memory and, on paper, the
    registers; None where none is valid.

    That is the rule llama.cpp's CUDA back end picks its mul_mat_q tile by; rows a tile, stages and splits are fixed.
    Where no tile fits the registers, the first rule alone decides.
    """
    try:
        step = arranged(problem).step
    except UnusableInput:
        return None
    operand = OPERANDS.get(problem.x_dtype, "fp16")
    best: tuple[bool, int, GemmTile] | None = None
    for tile_m in COLUMN_TILES:
        if tile_m < waves.SIDE and waves.is_amd(limits):
            continue
        for (rows, warps), stages in product(STOCK_SHARES, STOCK_STAGES):
            tile = GemmTile(rows, tile_m, step, 1, 8, warps, stages, operand)
            if broken_rules(tile, problem, limits):
                continue
            found = (price(tile, problem, limits).spills, ceil_div(problem.m, tile_m), tile)
            if best is None or found[:2] < best[:2]:
                best = found
            if not found[0]:
                break
    return None if best is None else best[2]
