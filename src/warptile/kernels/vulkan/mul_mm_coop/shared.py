"""Shared memory of `vulkan.mul_mm_coop`, to the byte."""

from __future__ import annotations

from warptile import formats
from warptile.contracts import Problem
from warptile.kernels.vulkan.mul_mm_coop.tile import CHUNK, MulMmCoopTile
from warptile.layouts import Layout
from warptile.layouts.scale_words import chunks_a_load

PAD = 16
MOST_SPAN = 4
"""Chunks of scales in a stage for the sake of fewer loads; a longer step has more."""
_MATRIX_BYTES = 1024


def row_bytes(k_chunk: int) -> int:
    """Bytes of a staged row: k_chunk fp16 and one spare unit of 16 bytes."""
    return 2 * k_chunk + PAD


def scale_spans(tile: MulMmCoopTile, layout: Layout) -> tuple[int, int]:
    """(span, load span): chunks whose scales are staged together, and how many of them come from the same words.

    A span is whole steps. Spans start at multiples of themselves, so that words are shared from the first chunk on.
    """
    chunks, same = tile.k_chunk // CHUNK, min(MOST_SPAN, chunks_a_load(layout))
    if same % chunks == 0:
        return same, same
    return chunks, same if chunks % same == 0 else 1


def stage_bytes(tile: MulMmCoopTile, layout: Layout) -> int:
    """Bytes of one stage: x rows, and either decoded w rows (one set a block or a warp) or 4 bytes a row, group and
    chunk of a span."""
    if tile.weights == "registers":
        span, _ = scale_spans(tile, layout)
        return tile.tile_m * row_bytes(tile.k_chunk) + 4 * layout.groups_per_chunk * span * tile.tile_n
    copies = tile.warps_m if tile.weights == "warp" else 1
    return (tile.tile_m + copies * tile.tile_n) * row_bytes(tile.k_chunk)


def meeting(tile: MulMmCoopTile, layout: Layout) -> int:
    """Matrices of sums that the warps along k hand over at a time: the most that fit the stages, at least one."""
    if tile.warps_k == 1:
        return 1
    count = tile.matrices_n * tile.matrices_m
    room = tile.buffers * stage_bytes(tile, layout) // _handed_over(tile)
    return max(d for d in range(1, count + 1) if count % d == 0 and (d <= room or d == 1))


def shared_bytes(tile: MulMmCoopTile, layout: Layout) -> int:
    """Bytes of a workgroup: max(buffers * stage, what the sums leave through).

    That is a matrix of fp32 a warp; with weights in registers sums leave straight from there, after a matrix at least
    from every warp but the first along k was handed over.
    """
    m, n, _ = tile.matrix_sides
    leaving = _handed_over(tile) if tile.weights == "registers" else 4 * tile.warps * m * n
    return max(tile.buffers * stage_bytes(tile, layout), leaving)


def for_problem(tile: MulMmCoopTile, problem: Problem) -> int:
    """`shared_bytes` for a problem's format."""
    return shared_bytes(tile, formats.by_name(problem.format).layout)


def _handed_over(tile: MulMmCoopTile) -> int:
    return _MATRIX_BYTES * tile.warps_n * tile.warps_m * (tile.warps_k - 1)
