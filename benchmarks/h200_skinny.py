"""Tiles of `triton.gemv_mma` worth racing on one H200, by tokens."""

from __future__ import annotations

from collections.abc import Iterator

from warptile.contracts import Problem

# (tile_n, split_k, warps, row_warps, steps, ahead, registers)
ONE_TOKEN = (
    (16, 1, 8, 1, 2, 3, 128),
    (16, 1, 8, 1, 2, 2, 128),
    (16, 1, 4, 1, 2, 2, 128),
    (64, 4, 8, 4, 2, 2, 128),
    (128, 8, 8, 8, 2, 2, 128),
)
FEW_TOKENS = ((128, 8, 8, 8, 2, 2, 128), (64, 4, 8, 4, 2, 2, 128), (128, 8, 8, 4, 1, 1, 128), (64, 4, 8, 2, 1, 1, 128))
MOST = 16


def skinny_tiles(problem: Problem) -> Iterator[str]:
    """Texts of tiles, each as a plain and as a dependent launch; some may break a rule."""
    if problem.m > MOST:
        return
    held = next(t for t in (1, 2, 4, 8, 16) if t >= problem.m)
    for tile_n, split, warps, row_warps, steps, ahead, registers in ONE_TOKEN if problem.m == 1 else FEW_TOKENS:
        for early in (0, 1):
            yield (
                f"triton.gemv_mma:tile_n={tile_n},tile_m={held},split_k={split},warps={warps},row_warps={row_warps},"
                f"steps={steps},ahead={ahead},pdl={early},registers={registers}"
            )
