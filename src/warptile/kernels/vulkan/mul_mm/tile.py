"""The tile of `vulkan.mul_mm`: llama.cpp's eleven numbers, then our own fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from warptile.kernels.vulkan.warp_tile import WARP_FIELDS, WarpTile


@dataclass(frozen=True)
class MulMmTile(WarpTile):
    """A warp tile whose operands are staged as floating-point numbers.

    shared: element type staged in shared memory, "fp16" or "fp32". accumulator: "fp32".
    """

    kernel: ClassVar[str] = "vulkan.mul_mm"
    positional: ClassVar[tuple[str, ...]] = WARP_FIELDS

    shared: str = "fp16"
    accumulator: str = "fp32"
