"""How a matmul is computed: one folder a kernel, `kernels/RUNTIME/NAME/`, exporting `KERNEL`.

Folders are found by scanning, so adding a kernel touches its own folder only. A folder without `KERNEL` holds a kernel
that is made from something of the user's (a checkout of llama.cpp); whoever makes one hands it on, as `Kernels`.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from warptile.contracts import Kernel, Limits, Tile, UnusableInput


@functools.cache
def all_kernels() -> Mapping[str, Kernel]:
    """Every kernel by its full name, such as "vulkan.mul_mm"."""
    found: dict[str, Kernel] = {}
    for runtime in pkgutil.iter_modules(__path__):
        if not runtime.ispkg:
            continue
        package = importlib.import_module(f"{__name__}.{runtime.name}")
        for room in pkgutil.iter_modules(package.__path__):
            if room.ispkg:
                module = importlib.import_module(f"{package.__name__}.{room.name}")
                kernel: Kernel | None = getattr(module, "KERNEL", None)
                if kernel is not None:
                    found[kernel.name] = kernel
    return MappingProxyType(found)


# Device prefixes whose kernels come from one source.
SHARED = MappingProxyType({"cuda": "triton", "hip": "triton"})


def for_runtime(runtime: str) -> list[Kernel]:
    """The kernels of one runtime ("vulkan", "cuda", "hip"), by name."""
    wanted = SHARED.get(runtime, runtime)
    return [k for name, k in sorted(all_kernels().items()) if k.runtime == wanted]


def by_name(name: str) -> Kernel:
    """The kernel of a full name, or of a bare one where only one runtime has it.

    Raises UnusableInput for an unknown or ambiguous name.
    """
    kernels = all_kernels()
    if name in kernels:
        return kernels[name]
    matches = [k for full, k in kernels.items() if full.split(".", 1)[1] == name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UnusableInput(f"kernel {name!r} is ambiguous: {', '.join(k.name for k in matches)}")
    raise UnusableInput(f"no kernel {name!r}; kernels are {', '.join(sorted(kernels))}")


def parse_tile(text: str, kernel: str | None = None) -> tuple[Kernel, Tile]:
    """Read `KERNEL:field=value,...`, or the part after the colon for a named kernel.

    Raises UnusableInput where no kernel is named, or two different ones are.
    """
    prefix = text.split(":", 1)[0] if ":" in text else None
    if prefix is None and kernel is None:
        raise UnusableInput(f"tile {text!r} names no kernel: write KERNEL:field=value,... or give the kernel")
    found = by_name(prefix if prefix is not None else kernel or "")
    if prefix is not None and kernel is not None and by_name(kernel) is not found:
        raise UnusableInput(f"tile {text!r} belongs to {found.name}, not to {kernel}")
    return found, found.tile_type.parse(text)


@dataclass(frozen=True)
class Kernels:
    """`parse_tile` that also knows kernels made by the caller. It pickles where they do, so it goes with a job."""

    made: tuple[Kernel, ...] = ()

    def __call__(self, text: str) -> tuple[Kernel, Tile]:
        """The kernel and tile of a text form. Raises UnusableInput as `parse_tile`."""
        name = text.split(":", 1)[0]
        for kernel in self.made:
            if kernel.name == name:
                return kernel, kernel.tile_type.parse(text)
        return parse_tile(text)


def arrangement_of(kernel: Kernel, limits: Limits) -> str:
    """How a kernel wants packed weights to lie: its own `arrangement` where it has one, else the device's."""
    own: str = getattr(kernel, "arrangement", "")
    return own or limits.arrangement
