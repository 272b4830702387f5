"""The state of a device while something ran on it."""

from __future__ import annotations

from dataclasses import dataclass

Spread = tuple[float, float, float]


@dataclass(frozen=True)
class DeviceState:
    """Clocks, temperature and throttling as the driver told them.

    source: "nvml", "nvidia-smi", "amdgpu", or "unknown", where `why` says why nothing is known. samples: how often the
    driver answered. clock_mhz, memory_clock_mhz, temperature_c (Celsius), power_w (watts): [lowest, median, highest] of
    the samples, None where the driver does not tell. throttle: reasons that held at any sample, () for none, None where
    the driver does not tell.
    """

    source: str = "unknown"
    why: str = ""
    samples: int = 0
    clock_mhz: Spread | None = None
    memory_clock_mhz: Spread | None = None
    temperature_c: Spread | None = None
    power_w: Spread | None = None
    throttle: tuple[str, ...] | None = None
