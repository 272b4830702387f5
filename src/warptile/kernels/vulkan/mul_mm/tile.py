"""The tile of `vulkan.mul_mm`: llama.cpp's eleven numbers, then our own fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from warptile.contracts import Tile


@dataclass(frozen=True)
class MulMmTile(Tile):
    """A workgroup computes tile_n weight rows by tile_m tokens, tile_k of the reduction a step.

    Its block_size / subgroup warps each own warp_n x warp_m of that, in warp_iterations_n x warp_iterations_m passes of
    a grid of threads that each hold thread_n x thread_m sums. llama.cpp calls these, in order, BLOCK_SIZE, BM, BN, BK,
    WM, WN, WMITER, TM, TN, TK, WARP. shared: element type staged in shared memory, "fp16" or "fp32". accumulator:
    "fp32".
    """

    kernel: ClassVar[str] = "vulkan.mul_mm"
    positional: ClassVar[tuple[str, ...]] = (
        "block_size",
        "tile_n",
        "tile_m",
        "tile_k",
        "warp_n",
        "warp_m",
        "warp_iterations_n",
        "thread_n",
        "thread_m",
        "thread_k",
        "subgroup",
    )

    block_size: int
    tile_n: int
    tile_m: int
    tile_k: int
    warp_n: int
    warp_m: int
    warp_iterations_n: int
    thread_n: int
    thread_m: int
    thread_k: int
    subgroup: int
    shared: str = "fp16"
    accumulator: str = "fp32"

    @property
    def numbers(self) -> tuple[int, ...]:
        """The eleven numbers in llama.cpp's order."""
        return (
            self.block_size,
            self.tile_n,
            self.tile_m,
            self.tile_k,
            self.warp_n,
            self.warp_m,
            self.warp_iterations_n,
            self.thread_n,
            self.thread_m,
            self.thread_k,
            self.subgroup,
        )

    @property
    def warp_iterations_m(self) -> int:
        """warp_n * warp_m / (subgroup * thread_n * thread_m * warp_iterations_n), rounded down."""
        return (self.warp_n * self.warp_m) // (self.subgroup * self.thread_n * self.thread_m * self.warp_iterations_n)

    @property
    def accumulators(self) -> int:
        """fp32 sums a thread: warp_n * warp_m / subgroup."""
        return (self.warp_n * self.warp_m) // self.subgroup
