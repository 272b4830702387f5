"""The tile of `triton.gemm_wgmma`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from warptile.contracts import Tile


@dataclass(frozen=True)
class WgmmaTile(Tile):
    """A program computes rows * consumers weight rows by tile_m tokens, tile_k elements of k a stage.

    stages: stages of weights and activations in shared memory. split_k: parts that each tile's k is cut into; 0: as
    many programs as `programs` says share all steps evenly, each the end of one tile, whole tiles, the start of
    another. programs, with split_k = 1: that many programs take whole tiles in turn; 0: one a tile. group_m: token
    tiles that are walked through together. consumers: warp groups that decode and multiply, `rows` rows each, one or
    two matrix instructions' 64. sums: 1, or 2 that take turns, so that neighbouring matrix instructions do not wait for
    each other. early: 1 lets the next launch start while this one ends. pairs: 1 stores two neighbouring rows
    together, for even n. lean: 1 gives consumers little more registers than their loop needs, so that the compiler
    makes weights where they are multiplied instead of moving them there.
    """

    kernel: ClassVar[str] = "triton.gemm_wgmma"

    tile_m: int
    tile_k: int
    stages: int
    split_k: int = 1
    programs: int = 0
    group_m: int = 8
    consumers: int = 2
    rows: int = 64
    sums: int = 1
    early: int = 0
    pairs: int = 1
    lean: int = 0
    turn: int = 1
    hold: int = 1
    free: int = 0
    cluster: int = 1
    joined: int = 0

    @property
    def tile_n(self) -> int:
        """Weight rows of a program."""
        return self.rows * self.consumers
