"""nvidia-smi, where NVML's Python package is absent. A call takes some ten milliseconds of a processor."""

from __future__ import annotations

import functools
import shutil
import subprocess

from warptile.telemetry.sensor import Sample, Unknown, only, throttle_of

FIELDS = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw")
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
"""The field's name of drivers from 535 on, and before."""

_TIMEOUT_S = 5.0


class Smi:
    """One device, by its UUID. reasons: the name this driver has for clock event reasons, "" where it has none."""

    source = "nvidia-smi"
    quick = False

    def __init__(self, uuid: str, reasons: str) -> None:
        self._uuid, self._reasons = uuid, reasons

    def read(self) -> Sample | None:
        """See `Sensor`."""
        fields = (*FIELDS, *((self._reasons,) if self._reasons else ()))
        rows = query(fields, self._uuid)
        if not rows or len(rows[0]) != len(fields):
            return None
        clock, memory, temperature, power = (_number(cell) for cell in rows[0][:4])
        return Sample(clock, memory, temperature, power, _mask(rows[0][4]) if self._reasons else None)


def query(fields: tuple[str, ...], uuid: str = "") -> list[list[str]] | None:
    """The cells of nvidia-smi's answer, a row a device; None where it does not answer or knows no such field."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(
            [*command, *([f"--id={uuid}"] if uuid else [])],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    if said.returncode:
        return None
    return [[cell.strip() for cell in line.split(",")] for line in said.stdout.splitlines() if line.strip()]


def open_sensor(device: str, uuid: str = "") -> Smi:
    """The sensor of a device by its name or UUID. Raises Unknown."""
    program = shutil.which("nvidia-smi")
    if program is None:
        raise Unknown("there is no nvidia-smi")
    return _opened(program, device, uuid)


@functools.cache
def _opened(program: str, device: str, uuid: str) -> Smi:
    """`open_sensor`, asked once a process: listing the devices takes a second on some machines."""
    rows = [row for row in query(("name", "uuid")) or [] if len(row) == 2]
    if not rows:
        raise Unknown("nvidia-smi lists no device")
    chosen = rows[only([row[0] for row in rows], device, [row[1] for row in rows], uuid)][1]
    return Smi(chosen, next((name for name in REASONS if query((name,), chosen)), ""))


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:  # "[N/A]"
        return None


def _mask(cell: str) -> tuple[str, ...] | None:
    try:
        return throttle_of(int(cell, 16))
    except ValueError:
        return None
