"""NVIDIA's management library, through the optional package nvidia-ml-py."""

from __future__ import annotations

import importlib
from typing import Any

from warptile.telemetry.sensor import Sample, Unknown, only, throttle_of

_SM, _MEMORY, _CORE = 1, 2, 0


class Nvml:
    """One device. lib: the module `pynvml`, handle: its device."""

    source = "nvml"
    quick = True

    def __init__(self, lib: Any, handle: Any) -> None:
        self._lib, self._handle = lib, handle

    def read(self) -> Sample | None:
        """See `Sensor`; whatever one query refuses is None."""
        watts = self._ask("nvmlDeviceGetPowerUsage")
        bits = self._ask("nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:
            bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        return Sample(
            self._ask("nvmlDeviceGetClockInfo", _SM),
            self._ask("nvmlDeviceGetClockInfo", _MEMORY),
            self._ask("nvmlDeviceGetTemperature", _CORE),
            None if watts is None else watts / 1000,
            None if bits is None else throttle_of(int(bits)),
        )

    def _ask(self, name: str, *arguments: Any) -> float | None:
        ask = getattr(self._lib, name, None)
        if ask is None:
            return None
        try:
            return float(ask(self._handle, *arguments))
        except (self._lib.NVMLError, TypeError, ValueError):
            return None


def open_sensor(device: str, uuid: str = "") -> Nvml:
    """The sensor of a device by its name or UUID. Raises Unknown."""
    try:
        lib = importlib.import_module("pynvml")
    except ImportError:
        raise Unknown("nvidia-ml-py is not installed") from None
    try:
        lib.nvmlInit()
        handles = [lib.nvmlDeviceGetHandleByIndex(i) for i in range(lib.nvmlDeviceGetCount())]
        names = [_text(lib.nvmlDeviceGetName(handle)) for handle in handles]
        uuids = [_text(lib.nvmlDeviceGetUUID(handle)) for handle in handles]
    except (lib.NVMLError, AttributeError) as error:
        raise Unknown(f"NVML: {' '.join(str(error).split())}") from None
    return Nvml(lib, handles[only(names, device, uuids, uuid)])


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
