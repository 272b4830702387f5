"""Shared memory of `vulkan.mul_mm_coop`, to the byte."""

from __future__ import annotations

from warptile import formats
from warptile.contracts import Problem
from warptile.kernels.vulkan.mul_mm_coop.tile import CHUNK, MulMmCoopTile

PAD = 16


def row_bytes(k_chunk: int) -> int:
    """Bytes of a staged row: k_chunk fp16 and one spare unit of 16 bytes."""
    return 2 * k_chunk + PAD


def stage_bytes(tile: MulMmCoopTile, groups_a_chunk: int) -> int:
    """Bytes of one stage: x rows, and either decoded w rows (one set a block or a warp) or 4 bytes a row and group."""
    if tile.weights == "registers":
        scales = 4 * groups_a_chunk * (tile.k_chunk // CHUNK) * tile.tile_n
        return tile.tile_m * row_bytes(tile.k_chunk) + scales
    copies = tile.warps_m if tile.weights == "warp" else 1
    return (tile.tile_m + copies * tile.tile_n) * row_bytes(tile.k_chunk)


def shared_bytes(tile: MulMmCoopTile, groups_a_chunk: int) -> int:
    """Bytes of a workgroup: the pool, and where weights are subnormal numbers 4 bytes a row for its unit."""
    return pool_bytes(tile, groups_a_chunk) + (4 * tile.tile_n if tile.decode == "subnormal" else 0)


def pool_bytes(tile: MulMmCoopTile, groups_a_chunk: int) -> int:
    """Bytes of max(buffers * stage, what the sums leave through: a matrix of fp32 a warp).

    Weights in registers: the sums leave straight from there.
    """
    m, n, _ = tile.matrix_sides
    leaving = 0 if tile.weights == "registers" else 4 * tile.warps * m * n
    return max(tile.buffers * stage_bytes(tile, groups_a_chunk), leaving)


def for_problem(tile: MulMmCoopTile, problem: Problem) -> int:
    """`shared_bytes` for a problem's format."""
    return shared_bytes(tile, formats.by_name(problem.format).layout.groups_per_chunk)
