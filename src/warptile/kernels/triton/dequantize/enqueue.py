"""Launching `triton.dequantize`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from warptile.runtimes.triton.running import Run


def enqueue(run: Run, buffers: Sequence[Any], scalars: Sequence[int], grid: tuple[int, int, int]) -> None:
    """Decode into a scratch matrix, then y[:, row0 : row0 + rows] = x dense^T; scalars end in n."""
    x, w, y = buffers
    m, rows, k, row0, x_stride, y_stride, *planes, n = scalars
    dense = torch.empty((rows, k), dtype=x.dtype, device=x.device)
    run.launch(0, grid, w, dense, run.executed, rows, k, *planes)
    if m == 0:
        return
    left = x if x.dim() == 2 else x.as_strided((m, k), (x_stride, 1))
    out = y if y.dim() == 2 else y.as_strided((m, n), (y_stride, 1))
    if rows == n and out.is_contiguous():
        torch.mm(left, dense.t(), out=out)
    else:
        out[:, row0 : row0 + rows] = torch.mm(left, dense.t())
