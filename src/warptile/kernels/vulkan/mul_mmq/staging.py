"""What one staged chunk of 32 weights or activations takes in shared memory, exactly."""

from __future__ import annotations

from dataclasses import dataclass

from warptile import formats
from warptile.kernels.vulkan import q8_1
from warptile.kernels.vulkan.mul_mmq.tile import MulMmqTile
from warptile.layouts import Layout

WORD_BYTES = 4
INT8_WORDS = 8


@dataclass(frozen=True)
class Staging:
    """One weight chunk in shared memory, in 32-bit words.

    code_words: of codes; groups: scales a chunk (2 where a group is 16 elements); minimum: whether each group has one;
    paired: words of fp16 pairs the scales take, 0 where they are fp32.
    """

    code_words: int
    groups: int
    minimum: bool
    paired: int

    @property
    def scale_words(self) -> int:
        """Words of scales and minimums."""
        return self.paired or self.groups * (1 + self.minimum)

    @property
    def weight_bytes(self) -> int:
        """Bytes of a staged weight chunk: a of llama.cpp's formula."""
        return WORD_BYTES * (self.code_words + self.scale_words)


def staging(tile: MulMmqTile, layout: Layout) -> Staging:
    """How a tile stages the chunks of a layout."""
    code_words = INT8_WORDS if tile.staged == "int8" else len(layout.codes.glsl_words())
    groups, minimum = layout.groups_per_chunk, layout.signed_minimum
    numbers = groups * (1 + minimum)
    paired = numbers // 2 if tile.scales == "fp16" else 0
    return Staging(code_words, groups, minimum, paired)


def shared_bytes(tile: MulMmqTile, format_name: str) -> int:
    """Shared bytes of a workgroup: bk_step * (weight_bytes * tile_n + 36 * tile_m)."""
    weight_bytes = staging(tile, formats.by_name(format_name).layout).weight_bytes
    return tile.bk_step * (weight_bytes * tile.tile_n + WORD_BYTES * q8_1.BLOCK_WORDS * tile.tile_m)
