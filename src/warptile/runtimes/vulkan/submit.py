"""Recording launches into a command buffer, submitting it and reading what came back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.runtimes.vulkan.binding import ffi, lib, vk
from warptile.runtimes.vulkan.device import Device
from warptile.runtimes.vulkan.faults import check, driver_faults
from warptile.runtimes.vulkan.memory import Block, VulkanBuffer
from warptile.runtimes.vulkan.pipeline import Interface, VulkanBinary

SLOTS = 512
"""Launches in one submission; more are split over several."""

_SETS = 2 * SLOTS
"""Descriptor sets kept; more than one submission uses, so the oldest is never one being recorded."""

_DESCRIPTORS = 16 * _SETS
_WAIT_NS = 500_000_000
_COMPUTE = vk.VK_PIPELINE_BIND_POINT_COMPUTE
_STAGE = vk.VK_SHADER_STAGE_COMPUTE_BIT
_SHADER = vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
_TRANSFER = vk.VK_PIPELINE_STAGE_TRANSFER_BIT
_HOST = vk.VK_PIPELINE_STAGE_HOST_BIT
_END = vk.VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT


@dataclass(frozen=True, eq=False)
class Dispatch:
    """A launch with its binary and buffers as this runtime's own types. notes: what an instrumented build reads and
    writes, for such a binary.
    """

    binary: VulkanBinary
    buffers: tuple[VulkanBuffer, ...]
    scalars: tuple[int, ...]
    grid: tuple[int, int, int]
    notes: VulkanBuffer | None = None


class Queue:
    """One command buffer, one fence and one query pool, used again for every submission.

    `executed` holds one word a launch: zeroed before the first, stored by the kernels, copied out at the end.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._sets: dict[tuple[Any, ...], Any] = {}
        self.executed: VulkanBuffer | None = None
        self.readback: Block | None = None
        handle = device.handle
        with driver_faults("preparing the queue"):
            self._pool = vk.vkCreateCommandPool(
                handle,
                vk.VkCommandPoolCreateInfo(
                    queueFamilyIndex=device.family, flags=vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT
                ),
                None,
            )
            self._commands = vk.vkAllocateCommandBuffers(
                handle,
                vk.VkCommandBufferAllocateInfo(
                    commandPool=self._pool, level=vk.VK_COMMAND_BUFFER_LEVEL_PRIMARY, commandBufferCount=1
                ),
            )[0]
            self._fence = vk.vkCreateFence(handle, vk.VkFenceCreateInfo(), None)
            size = vk.VkDescriptorPoolSize(type=vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, descriptorCount=_DESCRIPTORS)
            self._descriptors = vk.vkCreateDescriptorPool(
                handle,
                vk.VkDescriptorPoolCreateInfo(
                    flags=vk.VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT,
                    maxSets=_SETS,
                    poolSizeCount=1,
                    pPoolSizes=[size],
                ),
                None,
            )
            self._queries = vk.vkCreateQueryPool(
                handle,
                vk.VkQueryPoolCreateInfo(queryType=vk.VK_QUERY_TYPE_TIMESTAMP, queryCount=2 * SLOTS),
                None,
            )
        self._fences = ffi.new("VkFence[]", [self._fence])
        self._begin = vk.VkCommandBufferBeginInfo(flags=vk.VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)
        self._submit = vk.VkSubmitInfo(commandBufferCount=1, pCommandBuffers=[self._commands])
        write, read = vk.VK_ACCESS_SHADER_WRITE_BIT, vk.VK_ACCESS_SHADER_READ_BIT
        moved, fetched = vk.VK_ACCESS_TRANSFER_WRITE_BIT, vk.VK_ACCESS_TRANSFER_READ_BIT
        self._barriers = {
            "launches": _barrier(_SHADER, write, _SHADER, read | write),
            "start": _barrier(_TRANSFER, moved, _SHADER | _TRANSFER, read | write | moved | fetched),
            "before copy": _barrier(_SHADER | _TRANSFER, write | moved, _TRANSFER, moved | fetched),
            "end": _barrier(_SHADER | _TRANSFER, write | moved, _HOST, vk.VK_ACCESS_HOST_READ_BIT),
        }

    def copy(self, source: Block, source_offset: int, target: Block, target_offset: int, nbytes: int) -> None:
        """Copy bytes between two blocks and wait."""
        self._start()
        self._copy(source, source_offset, target, target_offset, nbytes)
        self._barrier("end")
        self._finish("copying")

    def run(self, dispatches: Sequence[Dispatch], timed: bool) -> tuple[list[int], list[float]]:
        """(executed id of each dispatch, device seconds of each where `timed`); a barrier between every two."""
        ids: list[int] = []
        seconds: list[float] = []
        for first in range(0, len(dispatches), SLOTS):
            part = dispatches[first : first + SLOTS]
            self._record(part, timed)
            self._finish("running " + ", ".join(sorted({d.binary.key[:8] for d in part})))
            ids += self._read_ids(len(part))
            if timed:
                seconds += self._read_seconds(len(part))
        return ids, seconds

    def forget(self, buffers: Iterable[VulkanBuffer]) -> None:
        """Drop descriptor sets that name buffers about to be freed."""
        gone = {_place(buffer) for buffer in buffers}
        if not gone:
            return
        for key in [key for key in self._sets if not gone.isdisjoint(key[1:])]:
            self._free_set(key)

    def wait_idle(self) -> None:
        """Wait until the device has nothing to do, or is lost."""
        lib.vkDeviceWaitIdle(self._device.handle)

    def close(self) -> None:
        """Destroy the queue's objects."""
        handle = self._device.handle
        if self.readback is not None:
            self.readback.close()
        vk.vkDestroyDescriptorPool(handle, self._descriptors, None)
        vk.vkDestroyQueryPool(handle, self._queries, None)
        vk.vkDestroyFence(handle, self._fence, None)
        vk.vkDestroyCommandPool(handle, self._pool, None)

    def _record(self, dispatches: Sequence[Dispatch], timed: bool) -> None:
        assert self.executed is not None
        assert self.readback is not None
        sets = [self._set(d.binary.interface, self._bound(d)) for d in dispatches]
        self._start()
        commands, executed = self._commands, self.executed
        if timed:
            lib.vkCmdResetQueryPool(commands, self._queries, 0, 2 * len(dispatches))
        size = 4 * len(dispatches)
        lib.vkCmdFillBuffer(commands, executed.block.handle, executed.offset, size, 0)
        self._barrier("start")
        for slot, (dispatch, chosen) in enumerate(zip(dispatches, sets, strict=True)):
            interface = dispatch.binary.interface
            words = ffi.new("uint32_t[]", [slot, *(value & 0xFFFFFFFF for value in dispatch.scalars)])
            if slot:
                self._barrier("launches")
            lib.vkCmdBindPipeline(commands, _COMPUTE, dispatch.binary.pipeline)
            lib.vkCmdBindDescriptorSets(commands, _COMPUTE, interface.layout, 0, 1, chosen, 0, ffi.NULL)
            lib.vkCmdPushConstants(commands, interface.layout, _STAGE, 0, interface.push_bytes, words)
            if timed:
                lib.vkCmdWriteTimestamp(commands, _END, self._queries, 2 * slot)
            lib.vkCmdDispatch(commands, *dispatch.grid)
            if timed:
                lib.vkCmdWriteTimestamp(commands, _END, self._queries, 2 * slot + 1)
        self._barrier("before copy")
        self._copy(executed.block, executed.offset, self.readback, 0, size)
        self._barrier("end")

    def _start(self) -> None:
        check(lib.vkBeginCommandBuffer(self._commands, ffi.addressof(self._begin)), "recording")

    def _finish(self, doing: str) -> None:
        handle = self._device.handle
        check(lib.vkEndCommandBuffer(self._commands), doing)
        check(lib.vkResetFences(handle, 1, self._fences), doing)
        check(lib.vkQueueSubmit(self._device.queue, 1, ffi.addressof(self._submit), self._fence), doing)
        result = vk.VK_TIMEOUT
        try:
            while result == vk.VK_TIMEOUT:
                result = lib.vkWaitForFences(handle, 1, self._fences, 1, _WAIT_NS)
                check(result, doing)
        except KeyboardInterrupt:
            # The command buffer may be recorded again only when the device is done with it.
            self.wait_idle()
            raise

    def _barrier(self, name: str) -> None:
        before, after, barrier = self._barriers[name]
        none = ffi.NULL
        lib.vkCmdPipelineBarrier(self._commands, before, after, 0, 1, barrier, 0, none, 0, none)

    def _copy(self, source: Block, source_offset: int, target: Block, target_offset: int, nbytes: int) -> None:
        region = ffi.new("VkBufferCopy*", {"srcOffset": source_offset, "dstOffset": target_offset, "size": nbytes})
        lib.vkCmdCopyBuffer(self._commands, source.handle, target.handle, 1, region)

    def _read_ids(self, count: int) -> list[int]:
        assert self.readback is not None
        assert self.readback.view is not None
        return [int(word) for word in self.readback.view[: 4 * count].view("<u4")]

    def _read_seconds(self, count: int) -> list[float]:
        ticks: NDArray[np.uint64] = np.empty(2 * count, np.uint64)
        flags = vk.VK_QUERY_RESULT_64_BIT | vk.VK_QUERY_RESULT_WAIT_BIT
        data = ffi.cast("void*", ticks.ctypes.data)
        result = lib.vkGetQueryPoolResults(
            self._device.handle, self._queries, 0, 2 * count, ticks.nbytes, data, 8, flags
        )
        check(result, "reading timestamps")
        mask = np.uint64((1 << self._device.timestamp_bits) - 1)
        spent = (ticks[1::2] - ticks[0::2]) & mask
        return [float(t) * self._device.timestamp_ns * 1e-9 for t in spent]

    def _bound(self, dispatch: Dispatch) -> tuple[VulkanBuffer, ...]:
        """Every buffer a launch binds, in the order of the bindings."""
        assert self.executed is not None
        own = (self.executed,) if dispatch.notes is None else (self.executed, dispatch.notes)
        return (*dispatch.buffers, *own)

    def _set(self, interface: Interface, buffers: tuple[VulkanBuffer, ...]) -> Any:
        key = (interface, *map(_place, buffers))
        found = self._sets.pop(key, None)
        if found is None:
            if len(self._sets) >= _SETS:
                self._free_set(next(iter(self._sets)))
            found = self._new_set(interface, buffers)
        # Put last again: the first is the one unused for longest.
        self._sets[key] = found
        return found

    def _free_set(self, key: tuple[Any, ...]) -> None:
        check(lib.vkFreeDescriptorSets(self._device.handle, self._descriptors, 1, self._sets.pop(key)), "unbinding")

    def _new_set(self, interface: Interface, buffers: tuple[VulkanBuffer, ...]) -> Any:
        handle = self._device.handle
        with driver_faults("binding buffers"):
            layouts = ffi.new("VkDescriptorSetLayout[]", [interface.set_layout])
            chosen = vk.vkAllocateDescriptorSets(
                handle,
                vk.VkDescriptorSetAllocateInfo(
                    descriptorPool=self._descriptors, descriptorSetCount=1, pSetLayouts=layouts
                ),
            )[0]
        writes = [
            vk.VkWriteDescriptorSet(
                dstSet=chosen, dstBinding=i, dstArrayElement=0, descriptorCount=1,
                descriptorType=vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                pBufferInfo=[vk.VkDescriptorBufferInfo(buffer=b.block.handle, offset=b.offset, range=b.bound)],
            )
            for i, b in enumerate(buffers)
        ]  # fmt: skip
        vk.vkUpdateDescriptorSets(handle, len(writes), writes, 0, [])
        return ffi.new("VkDescriptorSet[]", [chosen])


def _place(buffer: VulkanBuffer) -> tuple[Block, int, int]:
    """Where a binding points: what tells two descriptor sets apart, whichever objects named the bytes."""
    return buffer.block, buffer.offset, buffer.bound


def _barrier(before: int, written: int, after: int, seen: int) -> tuple[int, int, Any]:
    """(source stages, target stages, VkMemoryBarrier*)."""
    barrier = ffi.new(
        "VkMemoryBarrier*",
        {"sType": vk.VK_STRUCTURE_TYPE_MEMORY_BARRIER, "srcAccessMask": written, "dstAccessMask": seen},
    )
    return before, after, barrier
