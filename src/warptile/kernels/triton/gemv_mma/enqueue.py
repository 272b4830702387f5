"""Launching `triton.gemv_mma`, and others that add parts of k as it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warptile.runtimes.triton.running import Run


def enqueue(run: Run, buffers: Sequence[Any], scalars: Sequence[int], grid: tuple[int, int, int]) -> None:
    """One launch; scalars end in split_k and the sums a tile holds."""
    x, w, y = buffers
    *shared, split_k, sums = scalars
    if not all(grid):
        return
    if split_k > 1:
        programs = grid[0] * grid[1]
        part, count = run.floats(programs * sums), run.counters(programs // split_k)
    else:
        part, count = run.nothing(), run.nothing()
    run.launch(0, grid, x, w, y, part, count, run.executed, *shared)
