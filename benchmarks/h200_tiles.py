"""Candidate tiles for `h200_limits.py`: few a cell, chosen by what earlier runs on the card showed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from cuda_cases import GEMV_MOST, GEMV_TILES, column_tiles

from warptile import kernels
from warptile.contracts import Limits, Problem
from warptile.kernels.price_model import ceil_div
from warptile.kernels.triton.common import OPERANDS, arranged
from warptile.search import rank

# For few tokens: so many of each kernel's tiles of least price.
FEW_TOKENS, FEW_TOKENS_KERNELS, BEST_PRICED = 16, ("triton.gemv_mma", "triton.gemv_trits"), 4
# (tile_n, split_k, warps, stages) of the portable kernel by column tile, those that won somewhere.
PORTABLE = {
    8: ((64, 8, 4, 5), (64, 4, 4, 5)),
    16: ((64, 4, 4, 5), (64, 8, 4, 5)),
    32: ((64, 4, 4, 4),),
    64: ((64, 4, 4, 4), (64, 2, 4, 4)),
    128: ((64, 1, 4, 3), (64, 4, 4, 3)),
    256: ((64, 1, 4, 3), (64, 1, 4, 2)),
}
# Of tiles of 128 tokens, never timed: (split_k, programs a unit, rest, stages, registers). Steps shared evenly, and
# three programs on a unit, which a cap on registers and two stages make room for.
PORTABLE_SHARED = ((1, 0, 0, 2, 168), (0, 3, 0, 2, 168), (0, 3, 1, 2, 168), (0, 2, 1, 3, 0))
PORTABLE_UP_TO = 512
# Where parts or tiles fill less of the device, all steps are shared evenly as well.
FILLED = 0.8
# Fields of the loop, most steps a turn, and stages (0: as many as fit) of `gemm_wgmma` by token tile.
LOOPS = {
    16: (("hold=0,free=1", 4, 0),),
    32: (("hold=0,free=1", 4, 0),),
    64: (("hold=0,free=1", 4, 0), ("hold=0,free=1", 4, 4)),
    128: (("hold=1,free=1,lean=1", 2, 0), ("hold=0,free=1", 4, 4)),
    256: (("hold=1,free=1", 1, 0),),
}


def limit_tiles(problem: Problem, limits: Limits) -> list[str]:
    """Texts of the valid tiles to race on a problem, each once."""
    wgmma = [*_wgmma(problem, limits)]
    # Not timed yet: each beside itself, in the same rounds; broken rules leave out formats that it does not concern.
    wgmma += [f"{text},joined=1" for text in wgmma]
    texts = [*wgmma, *_portable(problem, limits), *_few(problem, limits)]
    found: dict[str, None] = {}
    for text in texts:
        kernel, tile = kernels.parse_tile(text)
        if not kernel.broken_rules(tile, problem, limits):
            found.setdefault(tile.text())
    return list(found)


def _wgmma(problem: Problem, limits: Limits) -> Iterator[str]:
    step, units = arranged(problem).step, limits.units
    steps = problem.k // step
    for tile_m in _tokens(problem.m):
        tiles = ceil_div(problem.n, 128) * ceil_div(problem.m, tile_m)
        waves = ceil_div(tiles, units)
        split = min(max(1, units // tiles), steps)
        while steps % split:
            split -= 1
        spreads = [f"split_k={split}"]
        if waves > 1:
            groups = (8, 16) if problem.m > 8 * tile_m else (8,)
            spreads = [f"programs={ceil_div(tiles, waves)},group_m={group}" for group in groups]
        unfilled = waves == 1 and tiles * split < FILLED * units
        if unfilled or (tiles % units and 1 < waves < 4):
            spreads.append(f"split_k=0,programs={units}")
        added = max(32, tile_m // 4)
        if waves > 1 and tiles % units:
            spreads.append(f"split_k=0,programs={units},rest=1,parts=4,added={added}")
            if waves > 2:
                spreads.append(f"split_k=0,programs={units},rest=2,added={added}")
        if tile_m == 256:
            spreads += [f"{spread},copied=1" for spread in spreads if spread.startswith("programs")]
            if unfilled:
                spreads.append(f"split_k=0,programs={units},added={added}")
        made = ("direct=1,", "") if problem.x_dtype == "bf16" else ("",)
        for (loop, most, stages), direct in itertools.product(LOOPS[tile_m], made):
            for spread in spreads:
                parts = split if spread == f"split_k={split}" else 1
                turn = next(t for t in (4, 2, 1) if t <= most and steps % (t * parts) == 0)
                fields = f"tile_m={tile_m},tile_k={step},pairs={1 - problem.n % 2},early=1,turn={turn},{direct}{loop}"
                fields += f",{spread}"
                deepest = _deepest(problem, limits, fields)
                yield f"triton.gemm_wgmma:{fields},stages={stages}" if stages else deepest
                if tile_m == 256 and deepest.endswith("stages=2"):
                    yield f"triton.gemm_wgmma:{fields},stages=3,ring=5"


def _deepest(problem: Problem, limits: Limits, fields: str) -> str:
    """The tile with the most stages that fit."""
    text = ""
    for stages in range(2, 9):
        wanted = f"triton.gemm_wgmma:{fields},stages={stages}"
        kernel, tile = kernels.parse_tile(wanted)
        if not text or not kernel.broken_rules(tile, problem, limits):
            text = wanted
    return text


def _tokens(m: int) -> tuple[int, ...]:
    held = next((t for t in (16, 32, 64, 128, 256) if t >= m), 256)
    if m <= 128:
        return (held,)
    return (128, 256) if m < 2048 else (256,)


def _portable(problem: Problem, limits: Limits) -> Iterator[str]:
    step, operand = arranged(problem).step, OPERANDS[problem.x_dtype]
    if problem.m <= GEMV_MOST:
        tokens = next(t for t in (1, 2, 4, 8) if t >= problem.m)
        for tile_n, steps, warps, stages in GEMV_TILES[:2]:
            yield f"triton.gemv:tile_n={tile_n},tile_m={tokens},steps={steps},warps={warps},stages={stages}"
    for tile_m in column_tiles(problem.m) if problem.m <= PORTABLE_UP_TO else ():
        fixed = f"tile_m={tile_m},tile_k={step},operand={operand}"
        for tile_n, split, warps, stages in PORTABLE[tile_m]:
            yield f"triton.gemm:{fixed},tile_n={tile_n},split_k={split},warps={warps},stages={stages}"
        paired = int(problem.format == "Q6_K")
        for split, each, rest, stages, registers in PORTABLE_SHARED if tile_m == 128 else ():
            yield (
                f"triton.gemm:{fixed},tile_n=64,split_k={split},programs={each * limits.units},rest={rest},warps=4,"
                f"stages={stages},registers={registers},paired={paired}"
            )


def _few(problem: Problem, limits: Limits) -> Iterator[str]:
    if problem.m > FEW_TOKENS:
        return
    for name in FEW_TOKENS_KERNELS:
        for candidate in rank(problem, limits, [kernels.by_name(name)])[:BEST_PRICED]:
            yield candidate.tile.text()
