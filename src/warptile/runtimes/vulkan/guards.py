"""Guarded buffers: bands of NaN around the payload show a write outside it and poison a read outside it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warptile.runtimes.vulkan.memory import Memory, VulkanBuffer

CANARY_WORD = 0x7FC27FC3
POISON_WORD = 0x7FC17FC1
"""Quiet NaNs as fp32, as each fp16 half and as each bf16 half."""

BAND_BEFORE = 4096
BAND_AFTER = 64 << 10


class GuardedBuffer(VulkanBuffer):
    """A payload with bands [start, offset) and [offset + nbytes, end of what was taken).

    The descriptor spans the band after the payload too: a driver that checks bounds would otherwise hide
    exactly what the band is there to show. With `at_end` the payload ends the Vulkan buffer.
    """

    bands: tuple[tuple[int, int], ...] = ()


def guarded_buffer(memory: Memory, nbytes: int, at_end: bool, max_range: int) -> GuardedBuffer:
    """Allocate, lay the canaries and poison the payload.

    at_end: a Vulkan buffer of its own whose last byte is the payload's, with a band before it alone. The driver
    may round the memory behind it up to its own alignment.
    """
    align = memory.alignment
    before = -(-BAND_BEFORE // align) * align
    if at_end:
        block = memory.own_block(before + nbytes)
        start, taken = 0, before + nbytes
        block.take(taken)
        buffer = GuardedBuffer(block, start, taken, before, nbytes, nbytes)
        buffer.bands = ((0, before),)
    else:
        block, start, taken = memory.take(before + nbytes + BAND_AFTER)
        offset, end = start + before, start + taken
        bound = min(end - offset, max_range) // 4 * 4
        buffer = GuardedBuffer(block, start, taken, offset, nbytes, max(bound, nbytes))
        buffer.bands = ((start, offset), (offset + nbytes, end))
    for begin, end in buffer.bands:
        memory.write(block, begin, pattern(CANARY_WORD, begin, end))
    memory.write(block, buffer.offset, pattern(POISON_WORD, buffer.offset, buffer.offset + nbytes))
    return buffer


def guards_intact(memory: Memory, buffer: GuardedBuffer) -> bool:
    """Whether every canary byte is as it was laid."""
    return all(
        np.array_equal(memory.read(buffer.block, begin, end - begin), pattern(CANARY_WORD, begin, end))
        for begin, end in buffer.bands
    )


def pattern(word: int, begin: int, end: int) -> NDArray[np.uint8]:
    """Bytes [begin, end) of an endless row of little-endian `word`s that starts at byte 0."""
    first = begin // 4 * 4
    words = np.full(-(-(end - first) // 4), word, "<u4")
    return words.view(np.uint8)[begin - first : end - first]
