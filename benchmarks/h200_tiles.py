"""Candidate tiles for `h200_limits.py`: few a cell, chosen by what earlier runs on the card showed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from cuda_cases import GEMV_MOST, GEMV_TILES, column_tiles

from warptile import kernels
from warptile.contracts import Limits, Problem
from warptile.kernels.price_model import ceil_div
from warptile.kernels.triton.common import OPERANDS, arranged

# Kernel rooms with tiles of their own to offer, as `MODULE:FUNCTION(problem) -> texts`.
OFFERS = ("h200_skinny:skinny_tiles",)
# (tile_n, split_k, warps, stages) of the portable kernel by column tile, those that won somewhere.
PORTABLE = {
    8: ((64, 8, 4, 5), (64, 4, 4, 5)),
    16: ((64, 4, 4, 5), (64, 8, 4, 5)),
    32: ((64, 4, 4, 4),),
    64: ((64, 4, 4, 4), (64, 2, 4, 4)),
    128: ((64, 1, 4, 3), (64, 4, 4, 3)),
    256: ((64, 1, 4, 3), (64, 1, 4, 2)),
}
PORTABLE_UP_TO = 512


def limit_tiles(problem: Problem, limits: Limits) -> list[str]:
    """Texts of the valid tiles to race on a problem, each once."""
    texts = [*_wgmma(problem, limits.units), *_portable(problem), *_offered(problem)]
    found: dict[str, None] = {}
    for text in texts:
        kernel, tile = kernels.parse_tile(text)
        if not kernel.broken_rules(tile, problem, limits):
            found.setdefault(tile.text())
    return list(found)


def _wgmma(problem: Problem, units: int) -> Iterator[str]:
    step = arranged(problem).step
    pairs = 1 - problem.n % 2
    steps = problem.k // step
    for tile_m in _tokens(problem.m):
        # The most stages that fit: the rules drop the others, and two are raced.
        for stages in {16: (7, 5), 32: (7, 5), 64: (7, 5), 128: (5, 4), 256: (3, 2)}[tile_m]:
            base = f"triton.gemm_wgmma:tile_m={tile_m},tile_k={step},stages={stages},pairs={pairs},early=1"
            tiles = ceil_div(problem.n, 128) * ceil_div(problem.m, tile_m)
            waves = ceil_div(tiles, units)
            if waves > 1:
                for group in (4, 8, 16):
                    yield f"{base},programs={ceil_div(tiles, waves)},group_m={group}"
            yield base
            if tiles < units:
                split = max(1, units // tiles)
                yield f"{base},split_k={min(split, steps)}"
                yield f"{base},split_k={min(max(1, split // 2), steps)}"
            if tiles % units and tiles < 4 * units:
                yield f"{base},split_k=0,programs={units}"
            if tile_m == 64:
                wide = ceil_div(problem.n, 256) * ceil_div(problem.m, tile_m)
                yield f"{base},consumers=4,split_k={min(max(1, units // wide), steps)}"


def _tokens(m: int) -> tuple[int, ...]:
    held = next((t for t in (16, 32, 64, 128, 256) if t >= m), 256)
    return (held,) if m <= 128 else (128, 256)


def _portable(problem: Problem) -> Iterator[str]:
    step, operand = arranged(problem).step, OPERANDS[problem.x_dtype]
    if problem.m <= GEMV_MOST:
        tokens = next(t for t in (1, 2, 4, 8) if t >= problem.m)
        for tile_n, steps, warps, stages in GEMV_TILES[:2]:
            yield f"triton.gemv:tile_n={tile_n},tile_m={tokens},steps={steps},warps={warps},stages={stages}"
    for tile_m in column_tiles(problem.m) if problem.m <= PORTABLE_UP_TO else ():
        for tile_n, split, warps, stages in PORTABLE[tile_m]:
            yield (
                f"triton.gemm:tile_n={tile_n},tile_m={tile_m},tile_k={step},split_k={split},warps={warps},"
                f"stages={stages},operand={operand}"
            )


def _offered(problem: Problem) -> Iterator[str]:
    for offer in OFFERS:
        module, _, name = offer.partition(":")
        try:
            room = import_module(module)
        except ModuleNotFoundError:
            continue
        yield from getattr(room, name)(problem)
