"""CUDA and ROCm through Triton, on torch tensors. Nothing here loads torch or Triton until a device is asked for.

`interpreter:0` is Triton's interpreter on the host's processor: there only where TRITON_INTERPRET=1 was set before
Python started, for tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warptile.contracts.errors import UnusableInput
from warptile.places import Places
from warptile.runtimes.entry import DeviceEntry, pick

if TYPE_CHECKING:
    from warptile.runtimes.triton.runtime import TritonRuntime

PREFIXES = ("cuda", "hip", "interpreter")


def list_devices() -> list[DeviceEntry]:
    """Every device torch reports, or the interpreter. Raises MissingExtra without torch or Triton, UnusableInput
    without a device."""
    from warptile.runtimes.triton.require import require_torch, require_triton

    require_torch()
    require_triton()
    from warptile.runtimes.triton.backends import entries

    return entries()


def open_device(text: str, places: Places, *, validation: bool = False) -> TritonRuntime:
    """Open `cuda:0`, `hip:0`, `interpreter:0`, or one by a part of its name.

    validation has no layer to turn on here; it is refused. Raises UnusableInput: no device, an ambiguous name, the
    other vendor's prefix; MissingExtra without torch or Triton.
    """
    places.ready()
    if validation:
        raise UnusableInput(
            "the Triton runtime has no validation layer; run compute-sanitizer over the process instead"
        )
    found = list_devices()
    from warptile.runtimes.triton.backends import open_backend
    from warptile.runtimes.triton.runtime import TritonRuntime

    entry = found[pick(text, found)]
    if entry.id.partition(":")[0] != text.partition(":")[0]:
        raise UnusableInput(f"no device {text}; there is: {entry.id} {entry.name}")
    return TritonRuntime(open_backend(entry), places)
