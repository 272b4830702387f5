"""What a runtime is: the only room that talks to a driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from warptile.contracts.launch import Launch, Scratch, Source
from warptile.contracts.limits import Limits
from warptile.contracts.price import Resources

Instrument = Literal["none", "checked", "delayed"]


@dataclass(frozen=True)
class Identity:
    """Who measured: exact device, driver and compiler. Part of every table key."""

    device: str
    driver: str
    compiler: str
    runtime: str

    def to_json(self) -> dict[str, str]:
        """Plain dictionary."""
        return asdict(self)


@dataclass(frozen=True)
class Ceilings:
    """Measured on this device, in this state: read bytes/s, FLOP/s, seconds of an empty launch.

    flops_per_s: of fp32 multiply-adds (Vulkan), of the library's dense fp16 matmul (CUDA, ROCm).
    """

    read_bytes_per_s: float
    flops_per_s: float
    empty_launch_s: float


@runtime_checkable
class Buffer(Protocol):
    """Bytes on a device. `nbytes` is the true extent a kernel may touch."""

    @property
    def nbytes(self) -> int: ...


@runtime_checkable
class Binary(Protocol):
    """A compiled kernel.

    id: 32 bits of the hash of (compiled input, constants, instrument, helpers); the kernel writes it when it runs.
    key: the whole hash, hexadecimal. compile_seconds: what the driver took, helpers included.
    helpers: the source's helpers, in the same order, each with an id of its own.
    """

    @property
    def id(self) -> int: ...
    @property
    def key(self) -> str: ...
    @property
    def source(self) -> Source: ...
    @property
    def compile_seconds(self) -> float: ...
    @property
    def helpers(self) -> tuple[Binary, ...]: ...


class Runtime(Protocol):
    """One open device. Found by prefix ("vulkan", "cuda", "hip") through `runtimes.open_device`.

    Raises CompileFailed, DoesNotFit, OutOfMemory, DeviceLost as its driver does.
    """

    name: str

    def limits(self) -> Limits:
        """Limits of this device through this runtime, `live` set."""
        ...

    def identity(self) -> Identity:
        """Exact device, driver and compiler."""
        ...

    def ceilings(self) -> Ceilings:
        """Measure (once a process) the read bandwidth, FLOP rate and empty launch."""
        ...

    def upload(self, data: NDArray[Any]) -> Buffer:
        """A new buffer holding `data`'s bytes."""
        ...

    def write(self, buffer: Buffer, data: NDArray[Any]) -> None:
        """Overwrite a buffer's first `data.nbytes` bytes."""
        ...

    def download(self, buffer: Buffer, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """A copy of a buffer's content."""
        ...

    def guarded_buffer(self, nbytes: int, at_end: bool = False) -> Buffer:
        """A buffer with canary bands of NaN before and after; the payload is poisoned with NaN too.

        at_end: the payload's last byte is the allocation's last (no band after).
        """
        ...

    def guards_intact(self, buffer: Buffer) -> bool:
        """Whether a guarded buffer's canaries are as they were laid."""
        ...

    def scratch_buffer(self, scratch: Scratch) -> Buffer:
        """The guarded buffer that launches naming `scratch` get, poisoned with NaN when it is first made.

        It is the runtime's: never freed by a caller, and given back when others were used since.
        """
        ...

    def free(self, buffers: Sequence[Buffer]) -> None:
        """Give buffers back; using one afterwards is an error."""
        ...

    def compile(self, source: Source, instrument: Instrument = "none") -> Binary:
        """Compile, or take from the cache after checking its hash. Raises CompileFailed, DoesNotFit."""
        ...

    def resources(self, binary: Binary) -> Resources | None:
        """The driver's statistics, None where it reports none."""
        ...

    def execute(self, launches: Sequence[Launch]) -> None:
        """Run the launches in order, each seeing the memory the one before it wrote; wait for the end."""
        ...

    def time(self, launches: Sequence[Launch]) -> list[float]:
        """As execute; device seconds of each launch, in order."""
        ...

    def executed_ids(self) -> list[int]:
        """For the last execute or time: the id each launch wrote on the device (0: it did not run)."""
        ...

    def close(self) -> None:
        """Release the device."""
        ...


def all_ids(binary: Binary) -> frozenset[int]:
    """Ids that the launches of a kernel may write: the binary's own and its helpers'."""
    return frozenset({binary.id}.union(*(all_ids(helper) for helper in binary.helpers)))


def sample_dtype(name: str) -> np.dtype[Any]:
    """numpy dtype for "fp32" or "fp16"."""
    return np.dtype({"fp32": np.float32, "fp16": np.float16}[name])
