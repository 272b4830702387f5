"""The Vulkan runtime behind `warptile.contracts.Runtime`."""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.contracts.errors import CandidateRejected, DoesNotFit, UnusableInput
from warptile.contracts.instruments import Observation
from warptile.contracts.launch import Launch, Scratch, Source
from warptile.contracts.limits import Limits
from warptile.contracts.price import Resources
from warptile.contracts.runtime import Binary, Buffer, Ceilings, Identity, Instrument
from warptile.places import Places
from warptile.runtimes.keys import binary_key
from warptile.runtimes.vulkan.ceilings import measure
from warptile.runtimes.vulkan.device import Device
from warptile.runtimes.vulkan.guards import GuardedBuffer, guarded_buffer, guards_intact
from warptile.runtimes.vulkan.instance import Instance, PhysicalDevice
from warptile.runtimes.vulkan.instrument import INSTRUMENTS
from warptile.runtimes.vulkan.instrument.observing import Observing
from warptile.runtimes.vulkan.instrument.poison import SharedPoison
from warptile.runtimes.vulkan.limits import device_limits
from warptile.runtimes.vulkan.matrix_order import matrix_order
from warptile.runtimes.vulkan.memory import HOST, Block, Memory, VulkanBuffer, host_cached, live
from warptile.runtimes.vulkan.pipeline import Pipelines, VulkanBinary
from warptile.runtimes.vulkan.scratch import ScratchPool
from warptile.runtimes.vulkan.statistics import read_statistics, resources
from warptile.runtimes.vulkan.submit import SLOTS, Dispatch, Queue


class VulkanRuntime:
    """One open Vulkan device; not shared between threads.

    memory: its allocator.
    scratch: where jobs of a worker keep what outlives one job (uploaded weights); the runtime only holds it.
    """

    name = "vulkan"

    def __init__(self, instance: Instance, physical: PhysicalDevice, places: Places) -> None:
        self.scratch: dict[str, object] = {}
        self._instance = instance
        self._device = Device(physical)
        self._limits = device_limits(self._device)
        self._queue = Queue(self._device)
        self.memory = Memory(self._device, self._queue.copy)
        self._queue.executed = self.memory.buffer(4 * SLOTS)
        self._queue.readback = Block(self._device, 4 * SLOTS, HOST | host_cached(self._device))
        entry = physical.entry
        self._pipelines = Pipelines(
            self._device, self._limits, places.cache / "vulkan", f"{entry.name}\n{entry.driver}"
        )
        self._binaries: dict[str, VulkanBinary] = {}
        self._emitting = threading.Lock()
        self._executed: list[int] = []
        self._scratches = ScratchPool(self.guarded_buffer, self.free)
        self._ceilings: Ceilings | None = None
        self._poison: SharedPoison | None = None
        self._limits = dataclasses.replace(self._limits, matrix_order=matrix_order(self))

    def limits(self) -> Limits:
        """Limits of this device through Vulkan."""
        return self._limits

    def identity(self) -> Identity:
        """Device name, driver name and version, and glslang's version."""
        entry = self._device.physical.entry
        return Identity(entry.name, entry.driver, f"glslang {self._pipelines.glslang.version}", self.name)

    def ceilings(self) -> Ceilings:
        """Measured on the first call, remembered afterwards; see `runtimes.vulkan.ceilings`."""
        if self._ceilings is None:
            self._ceilings = measure(self)
        return self._ceilings

    def upload(self, data: NDArray[Any]) -> VulkanBuffer:
        """A new buffer with the bytes of `data` in C order. Raises DoesNotFit, OutOfMemory."""
        buffer = self.buffer(data.nbytes)
        self.write(buffer, data)
        return buffer

    def buffer(self, nbytes: int) -> VulkanBuffer:
        """A new buffer with undefined content. Raises DoesNotFit over the device's range, OutOfMemory."""
        self._refuse_closed()
        self._check_size(nbytes)
        return self.memory.buffer(nbytes)

    def write(self, buffer: Buffer, data: NDArray[Any]) -> None:
        """Overwrite the first `data.nbytes` bytes. Raises ValueError where the buffer is shorter."""
        self._refuse_closed()
        own = _own(buffer)
        if data.nbytes > own.nbytes:
            raise ValueError(f"{data.nbytes} bytes do not fit a buffer of {own.nbytes}")
        self.memory.write(own.block, own.offset, np.ascontiguousarray(data).reshape(-1).view(np.uint8))

    def download(self, buffer: Buffer, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """A copy of the first bytes as `dtype[shape]`. Raises ValueError where the buffer is shorter."""
        self._refuse_closed()
        own = _own(buffer)
        kind: np.dtype[Any] = np.dtype(dtype)
        nbytes = math.prod(shape) * kind.itemsize
        if nbytes > own.nbytes:
            raise ValueError(f"{nbytes} bytes asked of a buffer of {own.nbytes}")
        content: NDArray[Any] = self.memory.read(own.block, own.offset, nbytes).view(kind)
        return content.reshape(shape)

    def guarded_buffer(self, nbytes: int, at_end: bool = False) -> GuardedBuffer:
        """See `runtimes.vulkan.guards`: bands of NaN, a payload of NaN. Raises DoesNotFit, OutOfMemory."""
        self._refuse_closed()
        self._check_size(nbytes)
        return guarded_buffer(self.memory, nbytes, at_end, self._limits.max_buffer_bytes)

    def guards_intact(self, buffer: Buffer) -> bool:
        """Whether no canary changed. Raises ValueError for a buffer without guards."""
        self._refuse_closed()
        own = _own(buffer)
        if not isinstance(own, GuardedBuffer):
            raise ValueError("the buffer has no guards")
        return guards_intact(self.memory, own)

    def scratch_buffer(self, scratch: Scratch) -> GuardedBuffer:
        """See `runtimes.vulkan.scratch`. Raises DoesNotFit, OutOfMemory."""
        return self._scratches.get(scratch)

    def free(self, buffers: Sequence[Buffer]) -> None:
        """Give buffers back; their room is used again."""
        self._refuse_closed()
        own = [_own(buffer) for buffer in buffers]
        self._queue.forget(own)
        for buffer in own:
            self.memory.free(buffer)

    def forget(self, views: Sequence[VulkanBuffer]) -> None:
        """Unbind views of a buffer that is about to be freed."""
        self._queue.forget(views)

    def compile(self, source: Source, instrument: Instrument = "none") -> VulkanBinary:
        """GLSL to machine code; the same source again gives the same binary. Raises CompileFailed, DoesNotFit."""
        if instrument != "none" and instrument not in INSTRUMENTS:
            raise UnusableInput(f"instrument {instrument!r} is not known to the Vulkan runtime")
        self._refuse_closed()
        key = binary_key(source, instrument)
        found = self._binaries.get(key)
        if found is None or found.source != source:
            helpers = tuple(self.compile(helper, instrument) for helper in source.helpers)
            built = self._pipelines.build(key, source, self._emit, instrument)
            seconds = built.compile_seconds + sum(helper.compile_seconds for helper in helpers)
            found = dataclasses.replace(built, compile_seconds=seconds, helpers=helpers)
            self._binaries[key] = found
        return found

    def compile_all(self, sources: Sequence[Source], threads: int) -> list[VulkanBinary | CandidateRejected]:
        """`compile` of each source, several at a time; what a source raises as a rejection stands in its place."""

        def one(source: Source) -> VulkanBinary | CandidateRejected:
            try:
                return self.compile(source)
            except CandidateRejected as error:
                return error

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(one, sources))

    def resources(self, binary: Binary) -> Resources | None:
        """The driver's statistics; None where it has none to give."""
        return resources(read_statistics(self._device, _own_binary(binary).pipeline))

    def execute(self, launches: Sequence[Launch]) -> None:
        """Run the launches in order with a memory barrier between every two, and wait."""
        self._run(launches, timed=False)

    def time(self, launches: Sequence[Launch]) -> list[float]:
        """As `execute`; seconds between two timestamps around each launch, each taken when all work before is done."""
        return self._run(launches, timed=True)

    @property
    def instruments(self) -> frozenset[Instrument]:
        """Instruments that `compile` knows."""
        return INSTRUMENTS

    def observe(self, launches: Sequence[Launch], once: Mapping[Buffer, int], seed: int = 0) -> Observation:
        """Run instrumented launches; see `contracts.InstrumentedRuntime` and `runtimes.vulkan.instrument`."""
        self._refuse_closed()
        self._executed = []
        self._scratches.keep({b for launch in launches for b in launch.buffers if isinstance(b, Scratch)})
        run = Observing(self, [self._dispatch(launch, observed=True) for launch in launches], once, seed)
        try:
            self._executed, _ = self._queue.run(run.dispatches, timed=False)
            return run.observation()
        finally:
            run.close()

    def poison_shared(self) -> None:
        """Run a kernel that leaves NaN in shared memory; see `instrument.poison`."""
        self._refuse_closed()
        if self._poison is None:
            self._poison = SharedPoison(self)
        self._poison.run()

    def executed_ids(self) -> list[int]:
        """What each launch of the last run stored; 0 where it stored nothing."""
        return list(self._executed)

    def close(self) -> None:
        """Save the driver's pipeline cache and release the device. A second call does nothing."""
        if self._device.handle is None:
            return
        try:
            self._pipelines.save()
        finally:
            self._queue.wait_idle()
            self.scratch.clear()
            self._queue.close()
            self._pipelines.close()
            self.memory.close()
            self._device.close()
            self._instance.close()

    def _refuse_closed(self) -> None:
        if self._device.handle is None:
            raise UnusableInput(f"{self._device.physical.entry.id} was closed: open it again")

    def _run(self, launches: Sequence[Launch], timed: bool) -> list[float]:
        self._refuse_closed()
        self._executed = []
        self._scratches.keep({b for launch in launches for b in launch.buffers if isinstance(b, Scratch)})
        dispatches = [self._dispatch(launch) for launch in launches]
        self._executed, seconds = self._queue.run(dispatches, timed)
        return seconds

    def _dispatch(self, launch: Launch, observed: bool = False) -> Dispatch:
        binary = _own_binary(launch.binary)
        source = binary.source
        if len(launch.buffers) != source.bindings or len(launch.scalars) != source.scalars:
            raise ValueError(
                f"a launch of {len(launch.buffers)} buffers and {len(launch.scalars)} scalars for a kernel of "
                f"{source.bindings} and {source.scalars}"
            )
        if any(g > most for g, most in zip(launch.grid, self._limits.max_grid, strict=True)):
            raise DoesNotFit("grid <= the device's most workgroups", f"{launch.grid} > {self._limits.max_grid}")
        if binary.instrumented is not None and not observed:
            raise UnusableInput(f"a {binary.instrumented.instrument} build is run by `observe` alone")
        buffers = tuple(self.scratch_buffer(b) if isinstance(b, Scratch) else _own(b) for b in launch.buffers)
        return Dispatch(binary, buffers, launch.scalars, launch.grid)

    def _emit(self, binary: VulkanBinary) -> None:
        """Run no workgroup at all: a driver that compiles on first use does it now, not in the first timing."""
        assert self._queue.executed is not None
        source = binary.source
        nothing = (self._queue.executed,) * source.bindings
        notes = None if binary.instrumented is None else self._queue.executed
        with self._emitting:
            self._queue.run([Dispatch(binary, nothing, (0,) * source.scalars, (0, 0, 0), notes)], timed=False)

    def _check_size(self, nbytes: int) -> None:
        if nbytes > self._limits.max_buffer_bytes:
            raise DoesNotFit(
                "buffer <= the device's storage-buffer range", f"{nbytes} > {self._limits.max_buffer_bytes}"
            )


def _own(buffer: Buffer) -> VulkanBuffer:
    if not isinstance(buffer, VulkanBuffer):
        raise TypeError(f"not a buffer of the Vulkan runtime: {type(buffer).__name__}")
    return live(buffer)


def _own_binary(binary: Binary) -> VulkanBinary:
    if not isinstance(binary, VulkanBinary):
        raise TypeError(f"not a binary of the Vulkan runtime: {type(binary).__name__}")
    return binary
