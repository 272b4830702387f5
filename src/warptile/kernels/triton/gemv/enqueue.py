"""Launching `triton.gemv`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warptile.runtimes.triton.running import Run


def enqueue(run: Run, buffers: Sequence[Any], scalars: Sequence[int], grid: tuple[int, int, int]) -> None:
    """One launch."""
    x, w, y = buffers
    if all(grid):
        run.launch(0, grid, x, w, y, run.executed, *scalars)
