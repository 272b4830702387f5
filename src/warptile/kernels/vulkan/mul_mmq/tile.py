"""The tile of `vulkan.mul_mmq`: llama.cpp's twelve numbers, then our own fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from warptile.kernels.vulkan.warp_tile import WARP_FIELDS, WarpTile

DOTS = ("int_dot", "plain")
STAGED = ("packed", "int8")
SCALES = ("fp16", "fp32")
LOADERS = ("chunk", "uniform", "divergent")


@dataclass(frozen=True)
class MulMmqTile(WarpTile):
    """A warp tile that stages bk_step chunks of 32 elements (llama.cpp's BK_STEP) of int8 operands between two
    barriers.

    dot: "int_dot" (four products and their sum in one instruction) or "plain" (multiply-adds). staged: weights in
    shared memory "packed" as in the layout, unpacked by every thread that reads them, or "int8", unpacked once. scales:
    "fp32", or "fp16" pairs where a chunk has two scales or a minimum (as llama.cpp keeps them; a lone scale is fp32
    always). loader: "chunk", a thread a chunk; for base-3 formats also a thread a word of a block, all threads in one
    "uniform" loop or in "divergent" branches.
    """

    kernel: ClassVar[str] = "vulkan.mul_mmq"
    positional: ClassVar[tuple[str, ...]] = (*WARP_FIELDS, "bk_step")

    bk_step: int = 4
    dot: str = "int_dot"
    staged: str = "packed"
    scales: str = "fp16"
    loader: str = "chunk"

    @property
    def step_k(self) -> int:
        """Elements along k between two barriers: 32 * bk_step."""
        return 32 * self.bk_step
