"""What is asked of a driver, and which driver tells of a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from warptile.contracts import Identity, Limits

NVIDIA, AMD = "NVIDIA", "AMD"


@dataclass(frozen=True)
class Sample:
    """One answer: MHz, MHz, degrees Celsius, watts, reasons for throttling; None: not told."""

    clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle: tuple[str, ...] | None = None


class Sensor(Protocol):
    """One device's driver. source: as in `DeviceState`. quick: an answer takes well under a millisecond of work."""

    @property
    def source(self) -> str: ...
    @property
    def quick(self) -> bool: ...

    def read(self) -> Sample | None:
        """The state now; None where the driver did not answer."""
        ...


class Unknown(Exception):
    """Why a driver tells nothing of a device, in one line."""


THROTTLE_BITS = (
    (0x2, "applications clocks setting"),
    (0x4, "software power cap"),
    (0x8, "hardware slowdown"),
    (0x10, "sync boost"),
    (0x20, "software thermal slowdown"),
    (0x40, "hardware thermal slowdown"),
    (0x80, "hardware power brake"),
    (0x100, "display clock setting"),
)
"""NVML's nvmlClocksEventReasons. Bit 0 (idle) and 0 (none) hold nothing back."""


def throttle_of(bits: int) -> tuple[str, ...]:
    """The names of NVML's clock event reasons in a mask; a bit without a name is "bit N"."""
    known = [name for bit, name in THROTTLE_BITS if bits & bit]
    rest = bits & ~(1 | sum(bit for bit, _ in THROTTLE_BITS))
    return (*known, *(f"bit {i}" for i in range(rest.bit_length()) if rest >> i & 1))


def vendor_of(identity: Identity, limits: Limits) -> str:
    """NVIDIA, AMD or nothing, as text."""
    words = f"{limits.vendor} {identity.device}".upper()
    if NVIDIA in words:
        return NVIDIA
    return AMD if any(word in words for word in ("AMD", "RADEON", "INSTINCT")) else ""


def only(names: Sequence[str], device: str, uuids: Sequence[str] = (), uuid: str = "") -> int:
    """Which of the driver's devices is meant: that of this UUID, else the only one of this name. Raises Unknown."""
    bare = uuid.lower().removeprefix("gpu-")
    if bare and (found := [i for i, each in enumerate(uuids) if each.lower().removeprefix("gpu-") == bare]):
        return found[0]
    same = [i for i, name in enumerate(names) if name and name in device]
    if len(same) != 1:
        found_text = f"{len(same)} devices" if same else "no device"
        raise Unknown(f"the driver lists {found_text} called {device}")
    return same[0]


def find(identity: Identity, limits: Limits, uuid: str = "") -> Sensor:
    """The sensor of a device. Raises Unknown, with the reason, where nothing tells of it.

    uuid: the device's, where the runtime says it; without one, a name that several devices share is not enough.
    """
    if limits.kind == "software":
        raise Unknown("a software device has no clocks of its own")
    from warptile.telemetry import amdgpu, nvml, smi

    tried: dict[str, tuple[Callable[[str, str], Sensor], ...]] = {
        NVIDIA: (nvml.open_sensor, smi.open_sensor),
        AMD: (amdgpu.open_sensor,),
    }
    reasons = []
    for open_sensor in tried.get(vendor_of(identity, limits), ()):
        try:
            return open_sensor(identity.device, uuid)
        except Unknown as reason:
            reasons.append(str(reason))
    raise Unknown("; ".join(reasons) or f"no driver here tells the clocks of {identity.device}")
