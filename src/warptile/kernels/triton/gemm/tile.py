"""The tile of `triton.gemm`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from warptile.contracts import Tile


@dataclass(frozen=True)
class GemmTile(Tile):
    """A program computes tile_n weight rows by tile_m tokens over 1 / split_k of k, tile_k elements of it a step.

    group_m: tiles along m that are walked through together. warps, stages: of a program, and loads in flight. operand:
    type both factors have when multiplied, "fp16", "bf16", "tf32" or "ieee" (fp32). decode: "half" (weights made in
    fp16 over their row's unit) or "plain" (made in fp32, then rounded). registers: the most a thread may have (on
    NVIDIA's cards), 0 for the compiler's choice. split_k = 0: `programs` programs share all steps evenly, each the end
    of one tile, whole tiles, the start of another; rest, then: programs take whole tiles as long as each has as many,
    and only the steps of the rest are shared (1), or of the rest and one tile a program (2). paired: 1 makes scales of
    a byte two at a time (decode "half", on NVIDIA's cards, Q6_K): fewer instructions.
    """

    kernel: ClassVar[str] = "triton.gemm"

    tile_n: int
    tile_m: int
    tile_k: int
    split_k: int = 1
    group_m: int = 8
    warps: int = 4
    stages: int = 3
    operand: str = "fp16"
    decode: str = "half"
    registers: int = 0
    programs: int = 0
    rest: int = 0
    paired: int = 0
