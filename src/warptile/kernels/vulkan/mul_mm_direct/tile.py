"""The tile of `vulkan.mul_mm_direct`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from warptile.contracts import Tile


@dataclass(frozen=True)
class MulMmDirectTile(Tile):
    """A workgroup of `lanes` computes lanes * thread_n rows of w by thread_m rows of x; a lane thread_n x thread_m.

    load_n: neighbouring rows of w fetched with one load. x_access: "direct", "shuffle" or "shuffle64", as
    `register_tile` says. first: the dimension whose workgroups follow one another, "n" (they share rows of x) or "m"
    (they share rows of w).
    """

    kernel: ClassVar[str] = "vulkan.mul_mm_direct"

    lanes: int
    thread_n: int
    thread_m: int
    load_n: int = 1
    x_access: str = "direct"
    first: str = "n"

    @property
    def accumulators(self) -> int:
        """fp32 sums a thread."""
        return self.thread_n * self.thread_m

    def grid(self, rows: int, m: int) -> tuple[int, int, int]:
        """Workgroups for a slice of `rows` rows of w and m rows of x."""
        n_blocks, m_blocks = -(-rows // (self.lanes * self.thread_n)), -(-m // self.thread_m)
        return (m_blocks, n_blocks, 1) if self.first == "m" else (n_blocks, m_blocks, 1)
