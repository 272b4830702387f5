"""The tile of `triton.gemm_id`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from warptile.contracts import Tile


@dataclass(frozen=True)
class GemmIdTile(Tile):
    """A program computes tile_n weight rows of an expert by up to tile_m of the rows that go to it, tile_k elements of
    k a step.

    order: "sorted" (rows sorted by expert first, so that rows share an expert's weights) or "slots" (a row of y alone,
    with no sorting: for few rows; tile_m is then the matrix unit's least, and where y is summed a program takes all of
    a token's experts). Of "sorted": tail (a group's last tile of at most `tail` rows is computed as one of `tail`; 0:
    as any other) and span (tiles along n that a program takes one after another). Of "slots": steps (parts of k taken
    at once, by different warps). warps, stages, operand, decode: as in `triton.gemm`.
    """

    kernel: ClassVar[str] = "triton.gemm_id"

    tile_n: int
    tile_m: int
    tile_k: int
    order: str = "sorted"
    tail: int = 0
    span: int = 1
    steps: int = 1
    warps: int = 4
    stages: int = 3
    operand: str = "fp16"
    decode: str = "half"

    @property
    def rows(self) -> int:
        """Rows of x that a program multiplies usefully at most."""
        return self.tile_m if self.order == "sorted" else 1
