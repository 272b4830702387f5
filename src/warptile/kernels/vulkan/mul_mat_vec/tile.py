"""The tile of `vulkan.mul_mat_vec`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from warptile.contracts import Tile

LEAST_MAX_GRID = 65535
"""Workgroups a dimension that every Vulkan device allows (maxComputeWorkGroupCount, required limits)."""


@dataclass(frozen=True)
class MulMatVecTile(Tile):
    """A workgroup of lanes_n * split_k computes lanes_n * thread_n rows of w by `columns` rows of x.

    Part p of split_k takes the chunks of k with number p modulo split_k; their sums meet in shared memory. split_k = 1
    uses none. load_n, x_access: as `register_tile` says. More rows of x than `columns` run as further workgroups.
    """

    kernel: ClassVar[str] = "vulkan.mul_mat_vec"

    lanes_n: int
    split_k: int
    thread_n: int
    columns: int = 1
    load_n: int = 1
    x_access: str = "direct"

    @property
    def workgroup(self) -> int:
        """Threads a workgroup."""
        return self.lanes_n * self.split_k

    @property
    def accumulators(self) -> int:
        """fp32 sums a thread."""
        return self.thread_n * self.columns

    @property
    def shared_bytes(self) -> int:
        """Bytes of the sums that parts 1 .. split_k - 1 hand over."""
        return 4 * (self.split_k - 1) * self.accumulators * self.lanes_n

    def grid(self, rows: int, m: int) -> tuple[int, int, int]:
        """Workgroups for a slice of `rows` rows of w and m rows of x: blocks of rows along x, folded into y where the
        device may not take that many along x, passes over x along z. A fold can leave workgroups without rows."""
        blocks = -(-rows // (self.lanes_n * self.thread_n))
        folds = -(-blocks // LEAST_MAX_GRID)
        return -(-blocks // folds), folds, -(-m // self.columns)
