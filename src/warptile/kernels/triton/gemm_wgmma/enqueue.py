"""Launching `triton.gemm_wgmma`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warptile.runtimes.triton.running import Run

M, ROWS, K, ROW0, X_STRIDE, Y_STRIDE, FIRST_PLANE = range(7)


def enqueue(run: Run, buffers: Sequence[Any], scalars: Sequence[int], grid: tuple[int, int, int]) -> None:
    """One launch. scalars: the shared ones, then split_k, tiles that are shared and programs that share them, the
    planes' number, whether y is copied out of shared memory, fp32 sums of a program's partial tile, and counters."""
    x, w, y = buffers
    *shared, split, rest, sharers, planes, copied, sums, counts = scalars
    if not all(grid):
        return
    starts = [*shared[FIRST_PLANE : FIRST_PLANE + planes], shared[-1]]
    boxes = [run.box(0, "X", x, (shared[M], shared[K]), (shared[X_STRIDE], 1))]
    boxes += [run.plane_box(0, f"D{i}", w, starts[i], starts[i + 1]) for i in range(planes)]
    if copied:
        # Rows of a slice begin in the middle of y's.
        out = y[..., shared[ROW0] :]
        boxes.append(run.box(0, "Out", out, (shared[M], shared[ROWS]), (shared[Y_STRIDE], 1)))
    whole = split == 1
    part = run.nothing() if whole else run.floats(2 * sharers * sums)
    count = run.nothing() if whole else run.counters(counts)
    run.launch(
        0, grid, *boxes, w, y, part, count, run.executed, shared[M], shared[ROWS], shared[K], grid[0], split,
        rest, sharers, shared[ROW0], shared[Y_STRIDE], shared[-1],
    )  # fmt: skip
