"""The tile of `vulkan.mul_mm_coop`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from warptile.contracts import Tile

CHUNK = 32


@dataclass(frozen=True)
class MulMmCoopTile(Tile):
    """A workgroup of warps_n x warps_m warps, each owning matrices_n x matrices_m cooperative matrices of y.

    operands: "fp16" or "int8", what is multiplied. matrix: the device's matrix, MxNxK (m along tokens, n along rows).
    k_chunk: elements of k a step. weights: where they are decoded, "block" (once for all warps, to shared memory),
    "warp" (each warp its own rows, to its own part of shared memory) or "registers" (each warp straight into its
    matrices, in the order that the driver keeps a matrix in). activations: "shared" (staged once a block).
    accumulator: "fp32" or "fp16". decode: arithmetic a weight is decoded in, "fp32", "fp16", or "subnormal" (fp16 on
    codes of 4 bits as the subnormal numbers they are; a block with a scale of 1/4 or more is summed a second time).
    buffers: stages of shared memory, 1 or 2. prefetch: 0, or how far ahead global loads are issued, in steps (weights
    in registers: in chunks of 32). split_k: parts of k that different workgroups take. first: the dimension whose
    workgroups follow one another, "n" or "m".

    int8 operands: activations are "shared" or "private" (each warp reads its own from memory); accumulator "fp32",
    across blocks that are summed in whole numbers; weights "block" or "warp"; buffers 1; prefetch 0 or 1. scales: how a
    whole number meets its scales, "raw" (through shared memory, two matrices at a time; decode "fp32": minimums stay
    fp32), "broadcast" (scales as a matrix of equal rows) or "lanes" (by the driver's known order); for both decode is
    "fp16": minimums are multiplied as fp16. x_block: activations that share a scale, 32 to 256. pad: spare bytes of a
    staged row. fp16 operands: "decoded" (each weight has its scale before it is multiplied), 0 and 16.
    """

    kernel: ClassVar[str] = "vulkan.mul_mm_coop"

    operands: str
    matrix: str
    warps_n: int
    warps_m: int
    matrices_n: int
    matrices_m: int
    k_chunk: int
    weights: str = "block"
    activations: str = "shared"
    accumulator: str = "fp32"
    decode: str = "fp16"
    buffers: int = 1
    prefetch: int = 1
    split_k: int = 1
    first: str = "m"
    subgroup: int = 32
    scales: str = "decoded"
    x_block: int = 0
    pad: int = 16

    @property
    def matrix_sides(self) -> tuple[int, int, int]:
        """(m, n, k) of the cooperative matrix; (0, 0, 0) where `matrix` is not three whole numbers."""
        parts = self.matrix.split("x")
        if len(parts) != 3 or not all(p.isdecimal() for p in parts):
            return 0, 0, 0
        m, n, k = map(int, parts)
        return m, n, k

    @property
    def warps(self) -> int:
        """Warps a workgroup."""
        return self.warps_n * self.warps_m

    @property
    def workgroup(self) -> int:
        """Threads a workgroup."""
        return self.warps * self.subgroup

    @property
    def tile_n(self) -> int:
        """Weight rows a workgroup."""
        return self.warps_n * self.matrices_n * self.matrix_sides[1]

    @property
    def tile_m(self) -> int:
        """Tokens a workgroup."""
        return self.warps_m * self.matrices_m * self.matrix_sides[0]

    @property
    def accumulators(self) -> int:
        """Sums a thread."""
        m, n, _ = self.matrix_sides
        return self.matrices_n * self.matrices_m * m * n // self.subgroup

    def part_k(self, k: int) -> int:
        """Elements of k a part takes: whole steps, the last part fewer."""
        steps = -(-k // self.k_chunk)
        return -(-steps // self.split_k) * self.k_chunk

    def grid(self, rows: int, m: int) -> tuple[int, int, int]:
        """Workgroups for a slice of `rows` rows of w and m rows of x."""
        n_blocks, m_blocks = -(-rows // self.tile_n), -(-m // self.tile_m)
        return (m_blocks, n_blocks, self.split_k) if self.first == "m" else (n_blocks, m_blocks, self.split_k)
