"""One run of instrumented launches: the notes they share, and what those say afterwards."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from warptile.contracts.errors import UnusableInput
from warptile.contracts.instruments import Observation
from warptile.contracts.limits import Limits
from warptile.contracts.runtime import Buffer
from warptile.runtimes.vulkan.instrument.delayed import MOST_SPINS, order
from warptile.runtimes.vulkan.instrument.report import HEADER_WORDS, Counted, Notes, Watched
from warptile.runtimes.vulkan.memory import VulkanBuffer
from warptile.runtimes.vulkan.submit import SLOTS, Dispatch

if TYPE_CHECKING:
    from warptile.runtimes.vulkan.runtime import VulkanRuntime


class Observing:
    """dispatches: the launches with their notes bound. Raises UnusableInput for a launch without an instrument."""

    def __init__(
        self, runtime: VulkanRuntime, dispatches: Sequence[Dispatch], once: Mapping[Buffer, int], seed: int
    ) -> None:
        if len(dispatches) > SLOTS:
            raise UnusableInput(f"{len(dispatches)} instrumented launches in one run, at most {SLOTS}")
        self._runtime = runtime
        counted = list(once.items())
        limits = runtime.limits()
        watched = [_watched(d, [buffer for buffer, _ in counted], limits, seed + i) for i, d in enumerate(dispatches)]
        self._notes = Notes(watched, [Counted(b.nbytes, unit) for b, unit in counted], limits.max_buffer_bytes)
        self._checked = any(d.binary.instrumented and d.binary.instrumented.instrument == "checked" for d in dispatches)
        self._buffer = runtime.upload(self._notes.initial())
        self.dispatches = [
            dataclasses.replace(d, notes=_from(self._buffer, 4 * HEADER_WORDS * slot), grid=w.dispatched)
            for slot, (d, w) in enumerate(zip(dispatches, watched, strict=True))
        ]

    def observation(self) -> Observation:
        """What the launches noted."""
        words = self._runtime.download(self._buffer, np.uint32, (self._notes.read_bytes // 4,))
        return self._notes.observation(words, self._checked)

    def close(self) -> None:
        """Give the notes' memory back."""
        self._runtime.forget([dispatch.notes for dispatch in self.dispatches if dispatch.notes is not None])
        self._runtime.free([self._buffer])


def _from(buffer: VulkanBuffer, offset: int) -> VulkanBuffer:
    """The same bytes from an offset on; one that is freed with the whole."""
    if not offset:
        return buffer
    nbytes = buffer.nbytes - offset
    return VulkanBuffer(buffer.block, buffer.start, buffer.taken, buffer.offset + offset, nbytes, nbytes)


def _watched(dispatch: Dispatch, counted: Sequence[Buffer], limits: Limits, seed: int) -> Watched:
    added, source = dispatch.binary.instrumented, dispatch.binary.source
    if added is None:
        raise UnusableInput(f"binary {dispatch.binary.key[:8]} was compiled without an instrument")
    once = {
        binding: number
        for binding, buffer in enumerate(dispatch.buffers)
        for number, each in enumerate(counted)
        if each is buffer
    }
    watched = Watched(
        identity=dispatch.binary.id,
        sites=added.sites,
        shadow_words=added.shadow_words,
        invocations=added.invocations,
        extents=(*(buffer.nbytes for buffer in dispatch.buffers), 4 * SLOTS),
        once=once,
        grid=dispatch.grid,
        dispatched=dispatch.grid,
        lines=source.text.splitlines(),
    )
    if added.instrument != "delayed" or not watched.workgroups:
        return watched
    found = order(dispatch.grid, seed, limits.units, limits.max_grid)
    return dataclasses.replace(
        watched,
        dispatched=found.dispatched,
        order=found.words,
        # Threads of a software device do not run beside each other within a workgroup: to wait gains nothing there.
        spins=0 if limits.kind == "software" else MOST_SPINS,
        warp=source.subgroup or max(limits.subgroup_sizes, default=limits.subgroup),
    )
