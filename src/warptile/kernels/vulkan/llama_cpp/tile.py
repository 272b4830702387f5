"""The tile of `vulkan.llama_cpp`: llama.cpp's eleven numbers, and which build of its two shaders they are for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from warptile.kernels.vulkan.warp_tile import WARP_FIELDS, WarpTile

SHADERS = ("mul_mm", "mul_mmq")


@dataclass(frozen=True)
class LlamaCppTile(WarpTile):
    """A tuple of llama.cpp.

    shader: "mul_mm" (decoded weights) or "mul_mmq" (int8 dot products of weights and activations). operands, sums:
    types of the build, "fp16" or "fp32"; operands of mul_mmq are the type of its scales.
    """

    kernel: ClassVar[str] = "vulkan.llama_cpp"
    positional: ClassVar[tuple[str, ...]] = WARP_FIELDS

    shader: str = "mul_mm"
    operands: str = "fp16"
    sums: str = "fp16"


def tile_of(numbers: Sequence[int], shader: str, operands: str, sums: str) -> LlamaCppTile:
    """The tile of eleven numbers in llama.cpp's order."""
    fields: dict[str, int] = dict(zip(WARP_FIELDS, numbers, strict=True))
    return LlamaCppTile(**fields, shader=shader, operands=operands, sums=sums)
