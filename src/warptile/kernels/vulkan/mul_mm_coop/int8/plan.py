"""How a tile of int8 operands cuts k for a layout, and what that needs in shared memory and scratch."""

from __future__ import annotations

from dataclasses import dataclass

from warptile import formats
from warptile.contracts import Problem
from warptile.kernels.price_model import ceil_div
from warptile.kernels.vulkan.mul_mm_coop.tile import CHUNK, MulMmCoopTile
from warptile.layouts import Layout
from warptile.layouts.six_bit import has_pairs

RAW_TILES = 2
"""Whole-number products a warp keeps in shared memory at once."""

SIX_BIT_WORDS = 4
"""Words of unpacked six-bit pairs a row: eight of two bytes a superblock."""

SUM_GRANULE = 16
"""Elements a sum of codes covers in shared memory where products meet their scales there: Q8_K's."""

X_BLOCKS = (32, 64, 128, 256)
"""Activations that may share a scale."""

COLUMNS = 16
"""The minimums' product is padded to whole multiples of this along its k."""


@dataclass(frozen=True)
class Plan:
    """A tile on a layout. Counts of elements along k unless said otherwise.

    group: weights that share a scale. fold: products that one whole-number sum takes, min(group, k_chunk, x_block).
    span: elements of a step under one activation scale, min(k_chunk, x_block). gapped: two groups share a matrix, each
    staged beside 16 zeros. unsigned: codes stay unsigned, their offset is taken off by sums of activations. sums:
    whether sums of activation codes are needed. six_bit: whether pairs of six-bit scales are unpacked to shared memory.
    columns: k of the product of minimums a span, 0 without.
    """

    tile: MulMmCoopTile
    group: int
    fold: int
    span: int
    gapped: bool
    unsigned: bool
    minimum: bool
    sums: bool
    six_bit: bool
    columns: int

    @staticmethod
    def of(tile: MulMmCoopTile, layout: Layout) -> Plan:
        """The plan of a tile whose own rules hold."""
        group = layout.scales.group
        span = min(tile.k_chunk, tile.x_block)
        fold = min(group, span)
        raw = tile.scales == "raw"
        minimum = layout.signed_minimum
        unsigned = raw and layout.offset > 0 and layout.codebook is None and layout.codes.bits < 8
        columns = 0 if raw or not minimum else ceil_div(2 * span // fold, COLUMNS) * COLUMNS
        gapped = fold < tile.matrix_sides[2]
        six_bit = raw and has_pairs(layout)
        return Plan(tile, group, fold, span, gapped, unsigned, minimum, minimum or unsigned, six_bit, columns)

    @staticmethod
    def for_problem(tile: MulMmCoopTile, problem: Problem) -> Plan:
        """The plan for a problem's format."""
        return Plan.of(tile, formats.by_name(problem.format).layout)

    @property
    def step(self) -> int:
        """What parts of k are multiples of: whole K-chunks and whole blocks of activations."""
        return max(self.tile.k_chunk, self.tile.x_block)

    @property
    def unit_bytes(self) -> int:
        """Bytes of a unit of staged codes: matrices of k = 8 start every 8."""
        return 16 if self.tile.matrix_sides[2] % 16 == 0 else 8

    @property
    def weight_sets(self) -> int:
        """Staged copies of weight rows: one a block, or one a warp."""
        return 1 if self.tile.weights == "block" else self.tile.warps

    @property
    def weight_rows(self) -> int:
        """Rows of a set."""
        return self.tile.tile_n if self.tile.weights == "block" else self.tile.matrices_n * self.tile.matrix_sides[1]

    @property
    def weight_row_bytes(self) -> int:
        """Bytes of a staged weight row: a code a byte, 16 zeros between two groups that share a matrix, the spare."""
        return self.tile.k_chunk * (3 if self.gapped else 2) // 2 + self.tile.pad

    @property
    def x_row_bytes(self) -> int:
        """Bytes of a staged activation row, its scales and sums apart."""
        return self.tile.k_chunk + self.tile.pad

    @property
    def sum_words(self) -> int:
        """Words of sums of an activation row a step: int16 every 16 elements, or (64 high, low) in fp16 a group."""
        if not self.sums:
            return 0
        return self.tile.k_chunk // CHUNK if self.tile.scales == "raw" else self._columns_a_step // 2

    @property
    def sum_row_words(self) -> int:
        """`sum_words` and the spare of rows that are loaded as matrices."""
        return self.sum_words + (self.tile.pad // 4 if self.columns else 0)

    @property
    def minimum_row_words(self) -> int:
        """Words of a staged weight row's minimums: an fp16 pair a group, padded, and the spare."""
        return self._columns_a_step // 2 + self.tile.pad // 4 if self.columns else 0

    @property
    def _columns_a_step(self) -> int:
        return self.columns * (self.tile.k_chunk // self.span)

    @property
    def folds(self) -> int:
        """Whole-number sums a step."""
        return self.tile.k_chunk // self.fold

    def weight_bytes(self) -> int:
        """Shared bytes of codes of all sets."""
        return self.weight_sets * self.weight_rows * self.weight_row_bytes

    def scale_bytes(self) -> int:
        """Shared bytes of scales and minimums of all sets.

        raw: unpacked six-bit pairs, 16 a row; other layouts' scales are read where they lie. Else fp32 a group and row.
        """
        rows = self.weight_sets * self.weight_rows
        if self.tile.scales == "raw":
            return 4 * SIX_BIT_WORDS * rows if self.six_bit else 0
        return rows * 4 * (self.folds + self.minimum_row_words)

    def activation_bytes(self) -> int:
        """Shared bytes of staged activations: codes, a scale a span, sums. 0 where warps read their own."""
        if self.tile.activations != "shared":
            return 0
        scales = 4 * (self.tile.k_chunk // self.span)
        return self.tile.tile_m * (self.x_row_bytes + scales + 4 * self.sum_row_words)

    def shared_bytes(self) -> int:
        """Shared bytes of a workgroup.

        raw: warps * 2 matrices of int32 besides. Else sums leave through the codes' room, a matrix of fp32 a warp.
        With weights a warp, scales raw, pad 0 and 16x16x16 matrices: warps * (16 k_chunk + 2048 + (256 with six-bit
        pairs)) + 16 matrices_m (4 + k_chunk + k_chunk / 8), the last term where activations are shared.
        """
        m, n, _ = self.tile.matrix_sides
        matrix = 4 * self.tile.warps * m * n
        rest = self.scale_bytes() + self.activation_bytes()
        if self.tile.scales == "raw":
            return self.weight_bytes() + RAW_TILES * matrix + rest
        return max(self.weight_bytes(), matrix) + rest

    def padded(self, problem: Problem) -> tuple[int, int]:
        """(m, k) of the quantized activations: whole tiles along m, whole steps along k."""
        tile = self.tile
        rows = ceil_div(problem.m, tile.tile_m) * tile.tile_m
        return rows, ceil_div(problem.k, tile.k_chunk) * tile.k_chunk

    def scratch_words(self, problem: Problem) -> tuple[int, int, int]:
        """Words of quantized activations: (where scales start, where sums start, all).

        Codes s8[m, k]; scales f32[k / x_block, m]; sums u32[m, k / k_chunk, sum_words].
        """
        m, k = self.padded(problem)
        scales = m * k // 4
        sums = scales + k // self.tile.x_block * m
        return scales, sums, sums + m * (k // self.tile.k_chunk) * self.sum_words
