"""Launching `triton.gemm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warptile.runtimes.triton.running import Run


def enqueue(run: Run, buffers: Sequence[Any], scalars: Sequence[int], grid: tuple[int, int, int]) -> None:
    """One launch; scalars end in the shared tiles and the programs that share them, then how many partial tiles are
    kept, of how many sums, and counters."""
    x, w, y = buffers
    *shared, places, sums, counts = scalars
    if not all(grid):
        return
    if counts:
        part, count = run.floats(places * sums), run.counters(counts)
    else:
        part, count = run.nothing(), run.nothing()
    run.launch(0, grid, x, w, y, part, count, run.executed, *shared)
