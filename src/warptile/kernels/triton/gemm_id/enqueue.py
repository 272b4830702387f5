"""Launching `triton.gemm_id`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from warptile.kernels.triton.gemm_id.kernel import CHUNK, COMBINED, most_tiles

if TYPE_CHECKING:
    from warptile.runtimes.triton.running import Run


def enqueue_sorted(run: Run, buffers: Sequence[Any], scalars: Sequence[int], grid: tuple[int, int, int]) -> None:
    """Count, place, multiply, and add up where y is summed: builds in this order. buffers: x, w, y, ids, weights.

    Scalars end in experts, stride, x_share, top_k, slots, tile_m, summed.
    """
    x, w, y, ids, weights = buffers
    *shared, experts, stride, x_share, top_k, slots, tile_m, summed = scalars
    if not all(grid):
        return
    chunks = -(-slots // CHUNK)
    buckets = 1 << (experts + 1).bit_length()
    tiles = most_tiles(slots, experts, tile_m)
    space = run.floats(chunks * buckets + 4 * tiles + slots).view(torch.int32)
    work, counts, order = space.split([4 * tiles, chunks * buckets, slots])
    run.launch(0, (chunks, 1, 1), ids, counts, slots, experts)
    run.launch(1, (chunks, 1, 1), ids, counts, order, work, slots, experts, chunks, tiles)
    n, y_stride = shared[1], shared[5]
    target = y
    if summed:
        size = y.element_size()
        target = run.floats(-(-slots * n * size // 4)).view(y.dtype)
        shared[5] = n
    run.launch(2, grid, x, w, target, order, work, run.executed, *shared, experts, stride, x_share)
    if summed:
        tokens = slots // top_k
        run.launch(3, (tokens, -(-n // COMBINED), 1), target, ids, weights, y, n, y_stride, experts)


def enqueue_slots(run: Run, buffers: Sequence[Any], scalars: Sequence[int], grid: tuple[int, int, int]) -> None:
    """One launch; scalars end in experts, stride, x_share, top_k."""
    x, w, y, ids, weights = buffers
    if all(grid):
        run.launch(0, grid, x, w, y, ids, weights, run.executed, *scalars)
