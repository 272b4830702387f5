"""The tile of `vulkan.mul_mat_vecq`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from warptile.contracts import Tile
from warptile.kernels.vulkan.mul_mat_vec.tile import LEAST_MAX_GRID

CHUNK = 32
X_BYTES = 40
"""Of shared memory a chunk of 32 activations takes: 32 codes, the scale, two sums of 16 bits."""


@dataclass(frozen=True)
class MulMatVecqTile(Tile):
    """A workgroup of lanes_n * split_k computes lanes_n * thread_n rows of w by `columns` rows of x.

    A lane holds thread_n rows, load_n neighbouring ones a load. A step of a part of split_k is `chunks` neighbouring
    chunks of 32 along k. staging: "shared" (every workgroup quantizes all of its rows of x, while its first weights are
    on their way) or "scratch" (a dispatch before quantizes them). sums: how parts meet, "shuffle" (within a subgroup
    first) or "shared". prefetch: 1 where a step's weights are loaded before the step before is multiplied. dot:
    "int_dot" or "plain". More rows of x than `columns` run as further workgroups.
    """

    kernel: ClassVar[str] = "vulkan.mul_mat_vecq"

    lanes_n: int
    split_k: int
    thread_n: int
    columns: int = 1
    load_n: int = 4
    chunks: int = 1
    prefetch: int = 1
    staging: str = "shared"
    sums: str = "shuffle"
    dot: str = "int_dot"

    @property
    def workgroup(self) -> int:
        """Threads a workgroup."""
        return self.lanes_n * self.split_k

    @property
    def accumulators(self) -> int:
        """fp32 sums a thread."""
        return self.thread_n * self.columns

    def partials(self, subgroup: int) -> int:
        """Sums of one output that meet in shared memory; 1: none do."""
        together = max(subgroup, self.lanes_n) if self.sums == "shuffle" else self.lanes_n
        return self.workgroup // together

    def shared_bytes(self, k: int, subgroup: int) -> int:
        """Bytes of a workgroup: its quantized activations, where it stages them, and the partial sums."""
        partials = self.partials(subgroup)
        staged = X_BYTES * self.columns * (k // CHUNK) if self.staging == "shared" else 0
        return staged + (4 * partials * self.accumulators * self.lanes_n if partials > 1 else 0)

    def steps(self, k: int) -> int:
        """Steps a part takes along k."""
        return -(-(k // CHUNK) // (self.split_k * self.chunks))

    def grid(self, rows: int, m: int) -> tuple[int, int, int]:
        """Workgroups for a slice of `rows` rows of w and m rows of x: blocks of rows along x, folded into y where the
        device may not take that many along x, passes over x along z. A fold can leave workgroups without rows."""
        blocks = -(-rows // (self.lanes_n * self.thread_n))
        folds = -(-blocks // LEAST_MAX_GRID)
        return -(-blocks // folds), folds, -(-m // self.columns)
