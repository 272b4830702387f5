"""Candidate tiles of `triton.gemm_wgmma`, and the static table's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from warptile.contracts import Limits, Problem, UnusableInput
from warptile.kernels.price_model import ceil_div
from warptile.kernels.triton.common import arranged
from warptile.kernels.triton.gemm_wgmma.rules import LEAST_STAGES, broken_rules, tiles_of
from warptile.kernels.triton.gemm_wgmma.tile import WgmmaTile

TOKEN_TILES = (16, 32, 64, 128, 256)
STAGES = (5, 3)
MOST_STAGES = 8
STOCK_TOKENS = 128
ADDED_TOKENS = 32
FEW_PARTS = 4
"""Programs that share a tile at most, where only a rest is shared: more parts take longer to add."""
SHAPES = ((2, 64), (2, 128), (4, 64))
RINGED = {"stages": 3, "ring": 5}
"""Where only the fewest stages of the most tokens fit: activations in a ring of their own, five halves of a step."""
LOOPS = tuple(
    dict(zip(("turn", "hold", "free", "lean"), loop, strict=True))
    for loop in ((1, 1, 1, 0), (2, 0, 1, 0), (4, 0, 1, 0), (2, 1, 1, 1), (1, 1, 0, 0))
)
"""Forms of the loop: the last is every compiler's, the others' PTX is marked."""


def space(problem: Problem, limits: Limits) -> Iterator[WgmmaTile]:
    """Token tiles of 16 to 256 around m, with one program a tile, with k split, and with all steps, or those of what
    full rounds leave, shared evenly by as many programs as the device has units; the loop in several forms. Tiles may
    break a rule."""
    try:
        step = arranged(problem).step
    except UnusableInput:
        return
    pairs = int(problem.n % 2 == 0 and problem.y_dtype != "fp32")
    units = limits.units or 132
    fitting = [t for t in TOKEN_TILES if t < 2 * problem.m and t * 8 > min(problem.m, 256)] or [TOKEN_TILES[0]]
    for tile_m in fitting:
        for shape, loops in ((SHAPES[0], LOOPS), *((shape, LOOPS[-1:]) for shape in SHAPES[1:])):
            for loop in loops:
                fields = {"consumers": shape[0], "rows": shape[1], "pairs": pairs, **loop}
                deepest = _stages(WgmmaTile(tile_m, step, 1, **fields), problem, limits)
                for stages in dict.fromkeys((deepest, min(deepest, loop["turn"]), *STAGES)):
                    if not (LEAST_STAGES <= stages <= deepest):
                        continue
                    for early in (1, 0) if loop is LOOPS[-1] else (1,):
                        for direct in (1, 0) if problem.x_dtype == "bf16" else (0,):
                            base = WgmmaTile(tile_m, step, stages, early=early, direct=direct, **fields)
                            yield from _spreads(base, problem, units)
                            if stages == deepest == LEAST_STAGES and loop is LOOPS[0] and tile_m == TOKEN_TILES[-1]:
                                yield from _spreads(replace(base, **RINGED), problem, units)


def _stages(base: WgmmaTile, problem: Problem, limits: Limits) -> int:
    """The most stages whose shared bytes a program has; 0 where a rule breaks that stages do not mend."""
    found = 0
    for stages in range(LEAST_STAGES, MOST_STAGES + 1):
        if broken_rules(replace(base, stages=stages, turn=1), problem, limits):
            break
        found = stages
    return found


def _spreads(base: WgmmaTile, problem: Problem, units: int) -> Iterator[WgmmaTile]:
    tiles = tiles_of(base, problem.m, problem.n)
    for group_m in (8, 4, 16) if problem.m > 8 * base.tile_m else (8,):
        for split in (1, 2, 4, 8):
            if split == 1 or tiles * split <= 2 * units:
                yield _changed(base, split, 0, group_m)
        if tiles > units:
            # As many as there are units, and as few as need no more turns.
            for programs in dict.fromkeys((units, ceil_div(tiles, ceil_div(tiles, units)))):
                yield _changed(base, 1, programs, group_m)
                if base.tile_m == TOKEN_TILES[-1]:
                    yield _changed(base, 1, programs, group_m, copied=1)
        if not tiles % units:
            continue
        added = max(ADDED_TOKENS, base.tile_m // 4)
        if tiles < 4 * units:
            yield _changed(base, 0, units, group_m)
            if base.tile_m >= 2 * ADDED_TOKENS:
                yield _changed(base, 0, units, group_m, added=added)
        if tiles > units and base.tile_m >= ADDED_TOKENS:
            yield _changed(base, 0, units, group_m, rest=1, parts=FEW_PARTS, added=added)
            if tiles > 2 * units:
                yield _changed(base, 0, units, group_m, rest=2, added=added)


def _changed(base: WgmmaTile, split: int, programs: int, group_m: int, **further: int) -> WgmmaTile:
    return replace(base, split_k=split, programs=programs, group_m=group_m, **further)


def stock(problem: Problem, limits: Limits) -> WgmmaTile | None:
    """One program a tile of 128 rows by 128 tokens, with as many stages as fit, four at most; None where none is valid,
    and below half a tile of tokens, where nobody would take it unmeasured.

    That is the shape CUTLASS takes for a mixed-input matmul on this architecture where nothing was measured.
    """
    if 2 * problem.m < STOCK_TOKENS:
        return None
    try:
        step = arranged(problem).step
    except UnusableInput:
        return None
    pairs = int(problem.n % 2 == 0 and problem.y_dtype != "fp32")
    for stages in (4, 3, 2):
        tile = WgmmaTile(STOCK_TOKENS, step, stages, pairs=pairs)
        if not broken_rules(tile, problem, limits):
            return tile
    return None
