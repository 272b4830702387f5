"""The Triton runtime behind `warptile.contracts.Runtime`."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from warptile.contracts import DeviceLost, DeviceWeights, DoesNotFit, OutOfMemory, UnusableInput, WeightSlice
from warptile.contracts.launch import Launch, Source
from warptile.contracts.launch import Scratch as ScratchBuffer
from warptile.contracts.limits import Limits
from warptile.contracts.price import Resources
from warptile.contracts.runtime import Binary, Buffer, Ceilings, Identity, Instrument
from warptile.kernels.triton.program import LANGUAGE, Program
from warptile.places import Places
from warptile.runtimes.keys import binary_id
from warptile.runtimes.triton import memory
from warptile.runtimes.triton.backends import Backend
from warptile.runtimes.triton.ceilings import measure
from warptile.runtimes.triton.compiling import imported
from warptile.runtimes.triton.memory import TorchBuffer
from warptile.runtimes.triton.running import Launcher, Run, Scratch

if TYPE_CHECKING:
    from warptile.formats import Format

_SLOTS = 4096
_DTYPES = {"*fp16": torch.float16, "*bf16": torch.bfloat16, "*fp32": torch.float32}


@dataclass(frozen=True)
class TritonBinary:
    """A compiled program; see `contracts.Binary`. x_type, y_type: torch types its activations and outputs have."""

    id: int
    key: str
    source: Source
    compile_seconds: float
    program: Program
    launchers: tuple[Launcher, ...] = field(repr=False)
    helpers: tuple[Binary, ...] = ()

    def enqueue(self, run: Run, buffers: Sequence[Any], scalars: Sequence[int], grid: tuple[int, int, int]) -> None:
        """Call the program's launching function."""
        imported(self.program.enqueue)(run, buffers, scalars, grid)


class TritonRuntime:
    """One open device; not shared between threads.

    scratch: where jobs of a worker keep what outlives one job; the runtime only holds it.
    """

    name = "triton"

    def __init__(self, backend: Backend, places: Places) -> None:
        self.scratch: dict[str, object] = {}
        self._backend = backend
        self._limits = backend.limits()
        self._cache = places.cache / "triton"
        self._binaries: dict[str, TritonBinary] = {}
        self._ids = torch.zeros(_SLOTS, dtype=torch.int32, device=backend.device)
        self._work = Scratch()
        self._executed: list[int] = []
        self._ceilings: Ceilings | None = None

    @property
    def uuid(self) -> str:
        """The card's UUID, as its maker's own tools have it; "" where torch does not say, or there is no card."""
        device = self._backend.device
        if torch.device(device).type != "cuda":
            return ""
        return str(getattr(torch.cuda.get_device_properties(device), "uuid", ""))

    def limits(self) -> Limits:
        """Limits of this device through CUDA, ROCm or the interpreter."""
        return self._limits

    def identity(self) -> Identity:
        """Device, driver, Triton and its assembler."""
        return self._backend.identity()

    def ceilings(self) -> Ceilings:
        """Measured on the first call, remembered afterwards; see `runtimes.triton.ceilings`."""
        if self._ceilings is None:
            self._ceilings = measure(self._backend)
        return self._ceilings

    def upload(self, data: NDArray[Any]) -> TorchBuffer:
        """A new buffer with the bytes of `data` in C order. Raises DoesNotFit, OutOfMemory."""
        self._check_size(data.nbytes)
        buffer = memory.plain(data.nbytes, self._backend.device)
        self.write(buffer, data)
        return buffer

    def write(self, buffer: Buffer, data: NDArray[Any]) -> None:
        """Overwrite the first `data.nbytes` bytes. Raises ValueError where the buffer is shorter."""
        own = _own(buffer)
        if data.nbytes > own.nbytes:
            raise ValueError(f"{data.nbytes} bytes do not fit a buffer of {own.nbytes}")
        own.tensor()[: data.nbytes] = memory.to_tensor(data).to(self._backend.device)

    def download(self, buffer: Buffer, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """A copy of the first bytes as `dtype[shape]`. Raises ValueError where the buffer is shorter."""
        own = _own(buffer)
        kind: np.dtype[Any] = np.dtype(dtype)
        nbytes = math.prod(shape) * kind.itemsize
        if nbytes > own.nbytes:
            raise ValueError(f"{nbytes} bytes asked of a buffer of {own.nbytes}")
        content: NDArray[Any] = np.array(own.tensor()[:nbytes].cpu().numpy(), copy=True).view(kind)
        return content.reshape(shape)

    def guarded_buffer(self, nbytes: int, at_end: bool = False) -> TorchBuffer:
        """See `runtimes.triton.memory.guarded`. Raises DoesNotFit, OutOfMemory."""
        self._check_size(nbytes)
        return memory.guarded(nbytes, at_end, self._backend.device)

    def guards_intact(self, buffer: Buffer) -> bool:
        """Whether no canary changed. Raises ValueError for a buffer without guards."""
        return memory.intact(_own(buffer))

    def scratch_buffer(self, scratch: ScratchBuffer) -> Buffer:
        """Raises UnusableInput: Triton programs keep what lies between their launches themselves."""
        raise UnusableInput(f"scratch {scratch.name!r}: the Triton runtime has no scratch buffers between launches")

    def free(self, buffers: Sequence[Buffer]) -> None:
        """Give buffers back to torch."""
        for buffer in buffers:
            _own(buffer).memory = None

    def compile(self, source: Source, instrument: Instrument = "none") -> TritonBinary:
        """Lowered, named by its hash, compiled to write that name; the same source again gives the same binary.

        Raises CompileFailed, DoesNotFit, UnusableInput for a source in another language or an instrument.
        """
        if instrument != "none":
            raise UnusableInput(f"instrument {instrument!r} is not available in this version of the Triton runtime")
        if source.language != LANGUAGE:
            raise UnusableInput(f"the Triton runtime compiles {LANGUAGE!r} sources, not {source.language!r}")
        found = self._binaries.get(source.text)
        if found is None:
            start = time.perf_counter()
            program = Program.parse(source)
            key = self._backend.key(program)
            launchers = tuple(self._backend.build(build, key, self._cache) for build in program.builds)
            self._backend.resources(launchers)
            seconds = time.perf_counter() - start
            found = self._binaries[source.text] = TritonBinary(binary_id(key), key, source, seconds, program, launchers)
        return found

    def compile_ahead(self, sources: Sequence[Source]) -> int:
        """Compile side by side what `compile` will be asked for; what fails is left to it. How many at once."""
        new = {s.text: s for s in sources if s.text not in self._binaries and s.language == LANGUAGE}
        self._backend.ahead([Program.parse(source) for source in new.values()], self._cache)
        return self._backend.at_once

    def resources(self, binary: Binary) -> Resources | None:
        """Registers, spills and shared bytes; None in the interpreter."""
        return self._backend.resources(_own_binary(binary).launchers)

    def hazards(self, binary: Binary) -> tuple[str, ...]:
        """What of the compiled code an assembler's fault may make wrong now and then, one line each; see `hazards`."""
        return self._backend.hazards(_own_binary(binary).launchers)

    def pack_weights(self, format: Format, blocks: NDArray[np.uint8], n: int, k: int) -> DeviceWeights:
        """w[n, k] on the device, packed there from file blocks u8[rows, row bytes], repeated along n where rows < n.

        Equal to `layouts.pack_repeated`, uploaded. Raises UnusableInput, OutOfMemory.
        """
        from warptile.layouts import checked_rows
        from warptile.layouts.packing import rows_per_slice
        from warptile.layouts.triton import arrangement
        from warptile.layouts.triton.repack import repack

        rows_of = checked_rows(format, blocks, len(blocks), k)
        most = self._limits.max_buffer_bytes
        step = rows_per_slice(format, n, k, most, "quads")
        slices = []
        try:
            source = memory.to_tensor(rows_of).view(rows_of.shape).to(self._backend.device)
            for row0 in range(0, n, step):
                rows = min(step, n - row0)
                if row0 + rows <= len(rows_of):
                    part = source[row0 : row0 + rows]
                else:
                    part = source[(torch.arange(rows, device=source.device) + row0) % len(rows_of)]
                words = repack(format, part.reshape(-1), rows, k).view(torch.uint8)
                buffer = TorchBuffer(words, 0, words.numel())
                slices.append(WeightSlice(buffer, row0, rows, arrangement(format.layout, k).offsets(rows)[0]))
        except torch.OutOfMemoryError as error:
            raise OutOfMemory(f"{format.name} [{n}, {k}]: {str(error).splitlines()[0]}") from None
        return DeviceWeights(format.name, format.layout.name, n, k, tuple(slices))

    def execute(self, launches: Sequence[Launch]) -> None:
        """Run the launches in order on the current stream, and wait. Raises DeviceLost, OutOfMemory."""
        self._run(launches, timed=False)

    def time(self, launches: Sequence[Launch]) -> list[float]:
        """As `execute`; seconds between two events around each launch, with the device never short of work.

        Raises Untimed where the host could not see to that."""
        return self._run(launches, timed=True)

    def executed_ids(self) -> list[int]:
        """What each launch of the last run stored; 0 where it stored nothing."""
        return list(self._executed)

    def close(self) -> None:
        """Drop binaries and scratch memory, end what compiles. A second call does nothing."""
        self.scratch.clear()
        self._binaries.clear()
        self._backend.close()

    def _run(self, launches: Sequence[Launch], timed: bool) -> list[float]:
        if len(launches) > len(self._ids):
            self._ids = torch.zeros(len(launches), dtype=torch.int32, device=self._backend.device)
        self._executed = []
        self._ids.zero_()
        works = [self._prepared(launch, slot) for slot, launch in enumerate(launches)]
        seconds: list[float] = []
        try:
            if timed:
                seconds = self._backend.time(works)
            else:
                for work in works:
                    work()
            self._backend.synchronize()
            ids = self._ids[: len(launches)].cpu()
        except torch.OutOfMemoryError as error:
            raise OutOfMemory(str(error).splitlines()[0]) from None
        except RuntimeError as error:
            if "CUDA error" in str(error) or "HIP error" in str(error):
                raise DeviceLost(str(error).splitlines()[0]) from None
            raise
        self._executed = [int(i) & 0xFFFFFFFF for i in ids]
        return seconds

    def _prepared(self, launch: Launch, slot: int) -> Any:
        binary = _own_binary(launch.binary)
        source = binary.source
        if len(launch.buffers) != source.bindings or len(launch.scalars) != source.scalars:
            raise ValueError(
                f"a launch of {len(launch.buffers)} buffers and {len(launch.scalars)} scalars for a kernel of "
                f"{source.bindings} and {source.scalars}"
            )
        if any(g > most for g, most in zip(launch.grid, self._limits.max_grid, strict=True)):
            raise DoesNotFit("grid <= the device's most programs", f"{launch.grid} > {self._limits.max_grid}")
        types = dict(pointer for build in reversed(binary.program.builds) for pointer in build.pointers)
        types |= {box.name: f"*{box.type}" for build in binary.program.builds for box in build.boxes}
        x, w, y, *chosen = (_own(buffer).tensor() for buffer in launch.buffers)
        tensors = (
            x.view(_DTYPES[types.get("X", types.get("Out", "*fp32"))]),
            w.view(torch.int32),
            y.view(_DTYPES[types.get("Y", types.get("Out", "*fp32"))]),
            # Ids of experts, then weights of their sums (the ids again where there are none).
            *(part.view(kind) for part, kind in zip(chosen, (torch.int32, torch.float32), strict=False)),
        )
        executed = self._ids[slot : slot + 1].view(torch.uint32)
        run = Run(binary.launchers, executed, self._backend.device, self._work)

        def work() -> None:
            binary.enqueue(run, tensors, launch.scalars, launch.grid)

        return work

    def _check_size(self, nbytes: int) -> None:
        if nbytes > self._limits.max_buffer_bytes:
            raise DoesNotFit("buffer <= the device's largest", f"{nbytes} > {self._limits.max_buffer_bytes}")


def _own(buffer: Buffer) -> TorchBuffer:
    if not isinstance(buffer, TorchBuffer):
        raise TypeError(f"not a buffer of the Triton runtime: {type(buffer).__name__}")
    return buffer


def _own_binary(binary: Binary) -> TritonBinary:
    if not isinstance(binary, TritonBinary):
        raise TypeError(f"not a binary of the Triton runtime: {type(binary).__name__}")
    return binary
