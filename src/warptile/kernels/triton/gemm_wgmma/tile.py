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
    two matrix instructions' 64. sums: sets of sums a group keeps, 1. early: 1 lets the next launch start while this one
    ends. pairs: 1 stores two neighbouring rows together, for even n. lean: 1 gives consumers little more registers than
    their loop needs, so that the compiler makes weights where they are multiplied instead of moving them there. turn:
    steps of a turn of the loop, within which the matrix unit always has work. hold: 1 keeps the decode of the next part
    before the wait for the matrix unit. free: 1 spares a group's warps from meeting twice a step; each gives stages
    back by itself. rest, with split_k = 0: programs take whole tiles as long as each has as many, and only the steps
    of the rest are shared (1), or of the rest and one tile a program (2). parts: how many programs may share such a
    tile at most, 0 for any number. added: tokens whose parts are added at a time, 0 for all of a tile's. ring: parts of
    64 k of activations that are in shared memory at a time, in a ring of their own; 0: those of `stages`. copied: 1
    brings y to memory through a tile's last stage, by a copy that goes on while the next tile begins. direct: 1 makes
    bf16 weights in bf16, of scales rounded to it, instead of rounding what fp16 made: fewer instructions, about twice
    the rounding error. joined: 1 puts six-bit codes together two pairs at a time and scales of eight bits two groups
    at a time, and lets base-3 digits share what lies between neighbours: fewer instructions.
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
    rest: int = 0
    direct: int = 0
    parts: int = 0
    added: int = 0
    ring: int = 0
    copied: int = 0
    joined: int = 0

    @property
    def tile_n(self) -> int:
        """Weight rows of a program."""
        return self.rows * self.consumers
