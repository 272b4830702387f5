"""The tile of `triton.gemm_int8`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from warptile.contracts import Tile


@dataclass(frozen=True)
class GemmInt8Tile(Tile):
    """A program computes tile_n weight rows by tile_m tokens over all of k, tile_k elements of it a step.

    group_m: tiles along m that are walked through together. warps, stages: of a program, and loads in flight.
    """

    kernel: ClassVar[str] = "triton.gemm_int8"

    tile_n: int
    tile_m: int
    tile_k: int
    group_m: int = 8
    warps: int = 4
    stages: int = 3
