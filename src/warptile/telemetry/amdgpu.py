"""The amdgpu driver's files in sysfs: hwmon's clocks, temperature and power. It has no plain file on throttling."""

from __future__ import annotations

from pathlib import Path

from warptile.telemetry.sensor import Sample, Unknown, only

DRM = Path("/sys/class/drm")
_AMD = "0x1002"


class Amdgpu:
    """One card. hwmon: its folder with freq1_input (Hz), freq2_input (Hz), temp1_input (1/1000 C), power1_* (uW)."""

    source = "amdgpu"
    quick = True

    def __init__(self, hwmon: Path) -> None:
        self._hwmon = hwmon

    def read(self) -> Sample | None:
        """See `Sensor`."""
        power = _number(self._hwmon / "power1_average")
        if power is None:
            power = _number(self._hwmon / "power1_input")
        return Sample(
            _scaled(_number(self._hwmon / "freq1_input"), 1e-6),
            _scaled(_number(self._hwmon / "freq2_input"), 1e-6),
            _scaled(_number(self._hwmon / "temp1_input"), 1e-3),
            _scaled(power, 1e-6),
            None,
        )


def open_sensor(device: str, uuid: str = "", drm: Path = DRM) -> Amdgpu:
    """The sensor of a card: the only AMD card, or the one with the device's UUID or product name. Raises Unknown."""
    cards = [
        card / "device"
        for card in sorted(drm.glob("card[0-9]*"))
        if "-" not in card.name and _text(card / "device" / "vendor") == _AMD
    ]
    if not cards:
        raise Unknown("sysfs lists no AMD card")
    chosen = cards[0]
    if len(cards) > 1:
        names = [_text(card / "product_name") for card in cards]
        chosen = cards[only(names, device, [_text(card / "unique_id") for card in cards], uuid)]
    folders = sorted((chosen / "hwmon").glob("hwmon*"))
    if not folders:
        raise Unknown(f"the amdgpu driver has no sensors of {device}")
    return Amdgpu(folders[0])


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> float | None:
    try:
        return float(_text(path))
    except ValueError:
        return None


def _scaled(value: float | None, by: float) -> float | None:
    return None if value is None else value * by
