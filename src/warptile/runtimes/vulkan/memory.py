"""Device memory: big blocks, buffers cut from them, and copies to and from the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.contracts.errors import OutOfMemory
from warptile.runtimes.vulkan.binding import vk
from warptile.runtimes.vulkan.device import Device
from warptile.runtimes.vulkan.faults import driver_faults

BLOCK_BYTES = 32 << 20
"""Buffers up to half of this share blocks of this size; a larger one gets a block of its own."""

_ALIGNMENT = 256

DEVICE_LOCAL = vk.VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
HOST = vk.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
CACHED = vk.VK_MEMORY_PROPERTY_HOST_CACHED_BIT


class Block:
    """One allocation with one Vulkan buffer over all of it. view: its bytes, where the host sees them.

    size: the buffer's bytes; the driver may round the allocation up.
    """

    def __init__(self, device: Device, size: int, flags: int, avoid: int = 0, shared: bool = False) -> None:
        self._device = device.handle
        self.shared = shared
        self.size = size
        self.flags = flags
        self.free_ranges: list[tuple[int, int]] = [(0, size)]
        self.view: NDArray[np.uint8] | None = None
        usage = (
            vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
            | vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT
            | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT
        )
        self.memory: Any = None
        with driver_faults(f"allocating {size} bytes"):
            self.handle: Any = vk.vkCreateBuffer(self._device, vk.VkBufferCreateInfo(size=size, usage=usage), None)
            try:
                needs = vk.vkGetBufferMemoryRequirements(self._device, self.handle)
                index = memory_type(device.memory, int(needs.memoryTypeBits), flags, avoid)
                heap = int(device.memory.memoryHeaps[device.memory.memoryTypes[index].heapIndex].size)
                if needs.size > heap:
                    raise OutOfMemory(f"allocating {size} bytes: the device's memory heap holds {heap}")
                self.memory = vk.vkAllocateMemory(
                    self._device, vk.VkMemoryAllocateInfo(allocationSize=needs.size, memoryTypeIndex=index), None
                )
                vk.vkBindBufferMemory(self._device, self.handle, self.memory, 0)
                if flags & HOST == HOST:
                    mapped = vk.vkMapMemory(self._device, self.memory, 0, int(needs.size), 0)
                    self.view = np.frombuffer(mapped, np.uint8)
            except BaseException:
                self.close()
                raise

    def take(self, nbytes: int) -> int | None:
        """Offset of `nbytes` cut from the first free range that holds them; None where none does."""
        for i, (start, length) in enumerate(self.free_ranges):
            if length >= nbytes:
                self.free_ranges[i : i + 1] = [(start + nbytes, length - nbytes)] if length > nbytes else []
                return start
        return None

    def give(self, start: int, nbytes: int) -> None:
        """Put a range back and join it with its free neighbours."""
        joined: list[tuple[int, int]] = []
        for begin, length in sorted([*self.free_ranges, (start, nbytes)]):
            if joined and sum(joined[-1]) == begin:
                joined[-1] = (joined[-1][0], joined[-1][1] + length)
            else:
                joined.append((begin, length))
        self.free_ranges = joined

    @property
    def unused(self) -> bool:
        """Whether all of it is free."""
        return self.free_ranges == [(0, self.size)]

    def close(self) -> None:
        """Give the memory back to the driver."""
        self.view = None
        if self.handle is not None:
            vk.vkDestroyBuffer(self._device, self.handle, None)
        if self.memory is not None:
            vk.vkFreeMemory(self._device, self.memory, None)
        self.handle = self.memory = None


class VulkanBuffer:
    """A range of a block. nbytes: what a kernel may touch; bound: what the descriptor spans (guards included)."""

    def __init__(self, block: Block, start: int, taken: int, offset: int, nbytes: int, bound: int) -> None:
        self.block = block
        self.start = start
        self.taken = taken
        self.offset = offset
        self._nbytes = nbytes
        self.bound = bound
        self.freed = False

    @property
    def nbytes(self) -> int:
        """Bytes a kernel may touch."""
        return self._nbytes


class Memory:
    """Allocates buffers and moves bytes.

    Where the host sees device memory at full speed (software and integrated devices) bytes are copied
    directly; elsewhere through a staging block, `copy` recording the transfer.
    """

    def __init__(self, device: Device, copy: Callable[[Block, int, Block, int, int], None]) -> None:
        self._device = device
        self._copy = copy
        self._blocks: list[Block] = []
        self._staging: Block | None = None
        self.flags = memory_flags(device)
        self.alignment = max(_ALIGNMENT, int(device.limits.minStorageBufferOffsetAlignment))

    def buffer(self, nbytes: int) -> VulkanBuffer:
        """A buffer of `nbytes` whose content is undefined. Raises OutOfMemory."""
        block, start, taken = self.take(nbytes)
        return VulkanBuffer(block, start, taken, start, nbytes, nbytes)

    def take(self, nbytes: int) -> tuple[Block, int, int]:
        """(block, offset, bytes taken): room for `nbytes`, the offset aligned for a descriptor."""
        size = max(-(-nbytes // self.alignment) * self.alignment, self.alignment)
        if size <= BLOCK_BYTES // 2:
            for block in self._shared():
                start = block.take(size)
                if start is not None:
                    return block, start, size
            block = self.own_block(BLOCK_BYTES, shared=True)
        else:
            block = self.own_block(size)
        start = block.take(size)
        assert start is not None
        return block, start, size

    def own_block(self, size: int, shared: bool = False) -> Block:
        """A new block of device memory, which small buffers may be cut from where it is `shared`."""
        block = Block(self._device, size, self.flags, shared=shared)
        self._blocks.append(block)
        return block

    def free(self, buffer: VulkanBuffer) -> None:
        """Give the range back; a block left empty goes back to the driver, but one shared block is kept."""
        live(buffer)
        buffer.freed = True
        block = buffer.block
        block.give(buffer.start, buffer.taken)
        spare = any(other.unused for other in self._shared() if other is not block)
        if block.unused and (not block.shared or spare):
            self.drop(block)

    def drop(self, block: Block) -> None:
        """Give a whole block back to the driver."""
        self._blocks.remove(block)
        block.close()

    def use(self, flags: int) -> None:
        """Take blocks with these memory properties from now on; existing ones with others serve no new buffer."""
        self.flags = flags

    def write(self, block: Block, offset: int, data: NDArray[np.uint8]) -> None:
        """Copy host bytes into a block at `offset`."""
        if block.view is not None:
            block.view[offset : offset + data.nbytes] = data
            return
        for done, size in pieces(data.nbytes):
            staging, view = self._staged()
            view[:size] = data[done : done + size]
            self._copy(staging, 0, block, offset + done, size)

    def read(self, block: Block, offset: int, nbytes: int) -> NDArray[np.uint8]:
        """A copy of a block's bytes."""
        if block.view is not None:
            return block.view[offset : offset + nbytes].copy()
        out = np.empty(nbytes, np.uint8)
        for done, size in pieces(nbytes):
            staging, view = self._staged()
            self._copy(block, offset + done, staging, 0, size)
            out[done : done + size] = view[:size]
        return out

    @property
    def bytes_held(self) -> int:
        """Bytes of all blocks taken from the driver."""
        return sum(block.size for block in self._blocks)

    def close(self) -> None:
        """Give every block back."""
        for block in [*self._blocks, *([self._staging] if self._staging else [])]:
            block.close()
        self._blocks, self._staging = [], None

    def _shared(self) -> list[Block]:
        return [block for block in self._blocks if block.shared and block.flags == self.flags]

    def _staged(self) -> tuple[Block, NDArray[np.uint8]]:
        if self._staging is None:
            self._staging = Block(self._device, BLOCK_BYTES, HOST | host_cached(self._device), avoid=DEVICE_LOCAL)
        view = self._staging.view
        assert view is not None
        return self._staging, view


def live(buffer: VulkanBuffer) -> VulkanBuffer:
    """The buffer, or ValueError where it was given back."""
    if buffer.freed:
        raise ValueError("a buffer was used after it was freed")
    return buffer


def pieces(nbytes: int) -> list[tuple[int, int]]:
    """(start, size) of the staging-sized pieces of `nbytes`."""
    return [(start, min(BLOCK_BYTES, nbytes - start)) for start in range(0, nbytes, BLOCK_BYTES)]


def memory_type(memory: Any, allowed: int, flags: int, avoid: int = 0) -> int:
    """Index of the first memory type in the bit set `allowed` that has all `flags`, best without `avoid`."""
    fitting = [
        i
        for i in range(memory.memoryTypeCount)
        if allowed >> i & 1 and memory.memoryTypes[i].propertyFlags & flags == flags
    ]
    if not fitting:
        raise OutOfMemory(f"no memory type of the device has the properties {flags:#x}")
    return min(fitting, key=lambda i: bool(memory.memoryTypes[i].propertyFlags & avoid))


def memory_flags(device: Device) -> int:
    """Properties of the memory buffers live in: mapped where the host shares it, else device-local."""
    kinds = [device.memory.memoryTypes[i].propertyFlags for i in range(device.memory.memoryTypeCount)]
    if device.physical.type in {"software", "integrated"}:
        for flags in (DEVICE_LOCAL | HOST | CACHED, DEVICE_LOCAL | HOST):
            if any(kind & flags == flags for kind in kinds):
                return int(flags)
    return int(DEVICE_LOCAL)


def host_cached(device: Device) -> int:
    """HOST_CACHED where a coherent cached type exists: reading uncached memory back is slow."""
    kinds = [device.memory.memoryTypes[i].propertyFlags for i in range(device.memory.memoryTypeCount)]
    return int(CACHED) if any(kind & (HOST | CACHED) == HOST | CACHED for kind in kinds) else 0
