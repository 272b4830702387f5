"""The tile of `triton.gemv_mma`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from warptile.contracts import Tile


@dataclass(frozen=True)
class GemvMmaTile(Tile):
    """A program computes tile_n weight rows by tile_m tokens over 1 / split_k of k.

    warps: of a program; row_warps of them share a part of k, each with 16 or 32 rows of its own, and take `steps` steps
    of the weights' arrangement at a time. ahead: times `steps`, how many steps of weights a warp has on their way from
    memory, in registers. pdl: 1 where a program may start before the launch ahead of it ends (NVIDIA's programmatic
    dependent launch). registers: the most a thread may have, 0 for the compiler's choice. direct: how rows of x come
    to the matrix unit; 0: through registers into shared memory in the order of products, all before the first one;
    1: copied to shared memory as they lie, beside the first weights. lean: 1 where six-bit codes are put together two
    pairs at a time and multiplied by their scales as fp16 pairs, copies of rows that are not there read nothing, and
    parts of k pass on the sums of the tokens there are; 0 where not.
    """

    kernel: ClassVar[str] = "triton.gemv_mma"

    tile_n: int
    tile_m: int
    split_k: int = 1
    warps: int = 8
    row_warps: int = 1
    steps: int = 2
    ahead: int = 2
    pdl: int = 0
    registers: int = 0
    direct: int = 0
    lean: int = 0
