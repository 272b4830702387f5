"""The tile of `triton.gemv_trits`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from warptile.contracts import Tile


@dataclass(frozen=True)
class GemvTritsTile(Tile):
    """A program computes 16 row_warps weight rows by one or two tokens over 1 / split_k of k.

    warps: of a program; row_warps of them share a part of k, each with 16 rows of its own, and take `steps` blocks of
    128 weights at a time. ahead: times `steps`, how many of a warp's blocks are on their way from memory, in registers.
    pdl: 1 where a program may start before the launch ahead of it ends (NVIDIA's programmatic dependent launch).
    registers: the most a thread may have, 0 for the compiler's choice. upper: 0: bytes are met by
    their states modulo 256; 1: by the upper bytes of their products with powers of three.
    """

    kernel: ClassVar[str] = "triton.gemv_trits"

    row_warps: int
    tile_m: int
    split_k: int = 1
    warps: int = 8
    steps: int = 2
    ahead: int = 2
    pdl: int = 0
    registers: int = 0
    upper: int = 0
