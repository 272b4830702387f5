"""Where Triton kernels run: a torch device, or the interpreter."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from warptile.contracts import DoesNotFit, Identity, Limits, Resources, UnusableInput
from warptile.kernels.triton.program import Build, Program
from warptile.runtimes.entry import DeviceEntry
from warptile.runtimes.keys import binary_id
from warptile.runtimes.triton.assembler import ptxas_version
from warptile.runtimes.triton.compiling import (
    Compiled,
    gpu_target,
    imported,
    machine_code,
)
from warptile.runtimes.triton.hazards import hazards_of
from warptile.runtimes.triton.kept_keys import kept_key, known_key
from warptile.runtimes.triton.limits import device_limits, interpreter_limits
from warptile.runtimes.triton.require import require_torch, require_triton
from warptile.runtimes.triton.running import Launcher
from warptile.runtimes.triton.side_by_side import Compilers, at_once
from warptile.runtimes.triton.timing import CardQueue, timed

_MOST_KEPT = 4096


class Backend(Protocol):
    """What differs between a card and the interpreter. at_once: how many programs `ahead` compiles side by side."""

    at_once: int

    @property
    def device(self) -> Any: ...
    def limits(self) -> Limits: ...
    def identity(self) -> Identity: ...
    def key(self, program: Program) -> str: ...
    def build(self, build: Build, key: str, cache: Path | None) -> Launcher: ...
    def ahead(self, programs: Sequence[Program], cache: Path | None) -> None: ...
    def close(self) -> None: ...
    def resources(self, launchers: Sequence[Launcher]) -> Resources | None: ...
    def hazards(self, launchers: Sequence[Launcher]) -> tuple[str, ...]: ...
    def synchronize(self) -> None: ...
    def time(self, works: Sequence[Any]) -> list[float]: ...


def entries() -> list[DeviceEntry]:
    """The devices that can be opened. Raises MissingExtra, or UnusableInput where there is none."""
    torch = require_torch()
    triton = require_triton()
    if os.environ.get("TRITON_INTERPRET") == "1":
        driver = f"triton {triton.__version__}"
        return [DeviceEntry("interpreter:0", "Triton interpreter", driver, "software", "triton")]
    if not torch.cuda.is_available():
        raise UnusableInput("torch sees no CUDA or ROCm device")
    prefix = "cuda" if torch.version.hip is None else "hip"
    return [
        DeviceEntry(f"{prefix}:{i}", torch.cuda.get_device_name(i), _driver(), "discrete", "triton")
        for i in range(torch.cuda.device_count())
    ]


def open_backend(entry: DeviceEntry) -> Backend:
    """The backend of an entry."""
    if entry.id.startswith("interpreter"):
        return Interpreter()
    return backend_of(int(entry.id.partition(":")[2]))


@cache
def backend_of(index: int) -> Card:
    """The one backend of torch's device `index` in this process."""
    return Card(index)


def _driver() -> str:
    torch = require_torch()
    if torch.version.hip is not None:
        return f"ROCm {torch.version.hip}"
    return f"NVIDIA {_nvidia_driver()}, CUDA runtime {torch.version.cuda}"


@cache
def _nvidia_driver(kernel_module: Path = Path("/proc/driver/nvidia/version")) -> str:
    """Version of the kernel's NVIDIA module; where the system hides it, the CUDA version that the driver supports.

    Raises UnusableInput where neither can be read: measurements would not say what they hold for.
    """
    try:
        found = re.search(r"\b\d{3,}\.\d+(\.\d+)?\b", kernel_module.read_text("utf-8"))
        if found is not None:
            return found[0]
    except OSError:
        pass
    version = ctypes.c_int(0)
    try:
        failed = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except OSError as error:
        raise UnusableInput(f"the NVIDIA driver's version cannot be read: {error}") from None
    if failed or not version.value:
        raise UnusableInput(f"the NVIDIA driver does not tell its version (cuDriverGetVersion: {failed})")
    return f"API {version.value // 1000}.{version.value % 1000 // 10}"


class Card:
    """A CUDA or ROCm device of torch. keys: hashes of programs that are known already (compiled in another process)."""

    def __init__(self, index: int) -> None:
        self.keys: dict[Program, str] = {}
        self._torch = require_torch()
        self.device = self._torch.device("cuda", index)
        self._hip = self._torch.version.hip is not None
        self._limits = device_limits(index)
        architecture = next(f for f in self._limits.features if f.startswith(("sm_", "gfx")))
        self.target = gpu_target("hip" if self._hip else "cuda", architecture)
        self._architecture = architecture
        self.at_once = at_once()
        self._compilers: dict[Path | None, Compilers] = {}

    def limits(self) -> Limits:
        """Limits through CUDA or ROCm."""
        return self._limits

    def identity(self) -> Identity:
        """Device, driver, and Triton's version with its assembler's."""
        return Identity(self._limits.name, _driver(), _compiler(self._hip), self._limits.runtime)

    def key(self, program: Program) -> str:
        """Hash of the lowered program and the compiler."""
        found = self.keys.get(program)
        if found is None:
            found = self.keys[program] = compiled_key(program, self.target, self._hip)
        return found

    def build(self, build: Build, key: str, cache: Path | None) -> Launcher:
        """Compile and load; the launcher runs on the current stream. Raises CompileFailed, DoesNotFit."""
        launcher = CardLauncher(machine_code(build, self.target, key, cache), self.device.index)
        launcher.ready()
        return launcher

    def ahead(self, programs: Sequence[Program], cache: Path | None) -> None:
        """Compile side by side what `build` will be asked for; failures are left to it.

        What was lowered here before, by another process too, is taken to be in Triton's cache.
        """
        extra = {"compiler": _compiler(self._hip)}
        for program in programs:
            if program not in self.keys and (found := known_key(program, self.target, extra)) is not None:
                self.keys[program] = found
        wanted = [program for program in programs if program not in self.keys]
        if wanted:
            compilers = self._compilers.setdefault(cache, Compilers(self._architecture, cache))
            self.keys |= compilers.keys(wanted)

    def close(self) -> None:
        """End the processes that compiled."""
        for compilers in self._compilers.values():
            compilers.close()

    def resources(self, launchers: Sequence[Launcher]) -> Resources | None:
        """Registers, spills and shared bytes, the most over the builds."""
        kernels = [launcher.ready() for launcher in launchers if isinstance(launcher, CardLauncher)]
        raw = tuple(
            (f"{k.name}.{what}", float(value))
            for k in kernels
            for what, value in (("registers", k.n_regs), ("spills", k.n_spills), ("shared", k.metadata.shared))
        )
        return Resources(
            registers=max(k.n_regs for k in kernels),
            spilled_registers=max(k.n_spills for k in kernels),
            shared_bytes=max(k.metadata.shared for k in kernels),
            subgroup=self._limits.subgroup,
            raw=raw,
        )

    def hazards(self, launchers: Sequence[Launcher]) -> tuple[str, ...]:
        """See `hazards.hazards_of`."""
        kernels = [launcher.ready() for launcher in launchers if isinstance(launcher, CardLauncher)]
        return () if self._hip else hazards_of(kernels, ptxas_version(int(self.target.arch)))

    def synchronize(self) -> None:
        """Wait for all work of this device."""
        self._torch.cuda.synchronize(self.device)

    def time(self, works: Sequence[Any]) -> list[float]:
        """See `timing.timed`. Raises Untimed."""
        with self._torch.cuda.device(self.device):
            return timed(CardQueue(self._torch, self.device, self._limits.cache_to_exceed), works)


def compiled_key(program: Program, target: Any, hip: bool) -> str:
    """`Backend.key` of a card with that target; needs no card."""
    return kept_key(program, target, {"compiler": _compiler(hip)})


class _Address:
    """Where a tensor lies and its type, without keeping it alive."""

    def __init__(self, tensor: Any) -> None:
        self._at = tensor.data_ptr()
        self.dtype = tensor.dtype

    def data_ptr(self) -> Any:
        """The address."""
        return self._at


class CardLauncher:
    """A compiled build as a function of (grid, arguments)."""

    def __init__(self, compiled: Compiled, index: int) -> None:
        self._kernel = compiled.kernel
        self._count = len(compiled.names)
        self._positions = compiled.positions
        self._index = index
        self._boxes = {box.name: box for box in compiled.build.boxes}
        self._planes: dict[tuple[str, int, int, int], Any] = {}

    def box(self, name: str, tensor: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """See `running.Run.box`."""
        from triton.experimental.gluon.language import NVMMASharedLayout
        from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

        box = self._boxes[name]
        layout = NVMMASharedLayout(swizzle_byte_width=box.swizzle, element_bitwidth=box.bits, rank=len(box.shape))
        return TensorDescriptor(tensor, list(shape), list(strides), list(box.shape), layout)

    def plane_box(self, name: str, words: Any, start: int, end: int) -> Any:
        """See `running.Run.plane_box`. Weights' descriptors are kept: the same memory is asked for again and again."""
        key = (name, words.data_ptr(), start, end)
        found = self._planes.get(key)
        if found is None:
            torch = require_torch()
            box = self._boxes[name]
            plane = words[start:end].view({8: torch.uint8, 16: torch.uint16, 32: torch.int32}[box.bits])
            across = box.shape[-1]
            shape = (plane.numel(),) if len(box.shape) == 1 else (plane.numel() // across, across)
            if len(self._planes) >= _MOST_KEPT:
                self._planes.clear()
            found = self._planes[key] = self.box(name, _Address(plane), shape, (across, 1)[-len(shape) :])
        return found

    def ready(self) -> Any:
        """Triton's kernel, loaded onto the device. Raises DoesNotFit where it needs more than the device has."""
        from triton.runtime.errors import OutOfResources

        torch = require_torch()
        with torch.cuda.device(self._index):
            try:
                _ = self._kernel.run
            except OutOfResources as error:
                raise DoesNotFit(f"{error.name} fits the device", f"{error.required} > {error.limit}") from None
        return self._kernel

    def __call__(self, grid: tuple[int, int, int], *arguments: Any) -> None:
        """Enqueue on torch's current stream of the current device."""
        full: list[Any] = [None] * self._count
        for position, value in zip(self._positions, arguments, strict=True):
            full[position] = value
        self._kernel[grid](*full)


class Interpreter:
    """Triton's interpreter: the same kernels in numpy, on CPU tensors, one program after another."""

    at_once = 1

    def __init__(self) -> None:
        self.device = require_torch().device("cpu")
        require_triton()

    def limits(self) -> Limits:
        """Nominal limits."""
        return interpreter_limits()

    def identity(self) -> Identity:
        """The host's processor and Triton's version."""
        return Identity("Triton interpreter", platform.machine(), f"triton {require_triton().__version__}", "cuda")

    def key(self, program: Program) -> str:
        """Hash of the device functions' text and the constants: the interpreter has no lowered form."""
        parts = [
            repr(b) + Path(imported(b.function).fn.__code__.co_filename).read_text("utf-8") for b in program.builds
        ]
        return hashlib.sha256("\n".join([program.enqueue, *parts]).encode()).hexdigest()

    def build(self, build: Build, key: str, cache: Path | None) -> Launcher:
        """The function itself, with its constants."""
        function, constants = imported(build.function), dict(build.constants) | {"BUILD_ID": binary_id(key)}
        if not hasattr(function, "rewrite") and type(function).__name__ != "InterpretedFunction":
            raise UnusableInput(
                "TRITON_INTERPRET=1 was set after the kernels were imported; set it before Python starts"
            )

        def launch(grid: tuple[int, int, int], *arguments: Any) -> None:
            names = [name for name in function.arg_names if name not in constants]
            function[grid](**dict(zip(names, arguments, strict=True)), **constants)

        return launch

    def ahead(self, programs: Sequence[Program], cache: Path | None) -> None:
        """Nothing is compiled."""

    def close(self) -> None:
        """Nothing was started."""

    def resources(self, launchers: Sequence[Launcher]) -> Resources | None:
        """None: nothing is compiled."""
        return None

    def hazards(self, launchers: Sequence[Launcher]) -> tuple[str, ...]:
        """None: nothing is compiled."""
        return ()

    def synchronize(self) -> None:
        """Nothing runs on."""

    def time(self, works: Sequence[Any]) -> list[float]:
        """Seconds on the host's clock."""
        seconds = []
        for work in works:
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
        return seconds


@cache
def _compiler(hip: bool) -> str:
    triton = require_triton()
    text = f"triton {triton.__version__}"
    if hip:
        return text
    version = ptxas_version()
    return f"{text}, ptxas {version}" if version else text
