"""Launching `triton.gemm_int8`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from warptile.runtimes.triton.running import Run


def enqueue(run: Run, buffers: Sequence[Any], scalars: Sequence[int], grid: tuple[int, int, int]) -> None:
    """Quantize the activations, then multiply; scalars end in a block's elements, its parts and blocks a program."""
    x, w, y = buffers
    m, rows, k, row0, x_stride, y_stride, *planes, _unit, block, parts, together = scalars
    if not all(grid):
        return
    count = k // block
    codes = torch.empty(m * k, dtype=torch.int8, device=x.device)
    scales, sums = run.floats(count * m), run.floats(count * parts * m)
    run.launch(0, (m, -(-count // together), 1), x, codes, scales, sums, m, k, x_stride)
    run.launch(1, grid, codes, scales, sums, w, y, run.executed, m, rows, k, row0, y_stride, *planes)
