"""Finds the runtimes by scanning this package; the loop names none."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from typing import Protocol, cast

from warptile import runtimes
from warptile.contracts.errors import UnusableInput, WarptileError
from warptile.contracts.runtime import Runtime
from warptile.places import Places
from warptile.runtimes.entry import DeviceEntry, pick


class Room(Protocol):
    """What a runtime's folder exports. PREFIXES: the device prefixes it answers to."""

    PREFIXES: tuple[str, ...]

    def open_device(self, text: str, places: Places, *, validation: bool = False) -> Runtime: ...
    def list_devices(self) -> list[DeviceEntry]: ...


@dataclass(frozen=True)
class Survey:
    """Every device found, and for each runtime without one the reason in one line (prefix, reason)."""

    devices: tuple[DeviceEntry, ...]
    reasons: tuple[tuple[str, str], ...]


def rooms() -> dict[str, Room]:
    """Prefix -> runtime folder, for every folder of this package that declares PREFIXES."""
    found: dict[str, Room] = {}
    for module in pkgutil.iter_modules(runtimes.__path__):
        if module.ispkg:
            room = cast(Room, importlib.import_module(f"{runtimes.__name__}.{module.name}"))
            found.update(dict.fromkeys(room.PREFIXES, room))
    return found


def open_device(text: str, places: Places, *, validation: bool = False) -> Runtime:
    """Open `PREFIX`, `PREFIX:NUMBER` or `PREFIX:PART_OF_NAME`.

    validation: check every call with the driver's validation layer. Raises UnusableInput for an unknown
    prefix, no driver, no such device, an ambiguous name, an absent layer or a folder that cannot be written.
    """
    return _room(text).open_device(text, places, validation=validation)


def find_device(text: str) -> DeviceEntry:
    """The entry of the device that `open_device` would open. Raises UnusableInput as it does."""
    entries = _room(text).list_devices()
    return entries[pick(text, entries)]


def survey() -> Survey:
    """Ask every runtime for its devices."""
    devices: list[DeviceEntry] = []
    reasons: list[tuple[str, str]] = []
    seen: list[Room] = []
    for prefix, room in rooms().items():
        if room in seen:
            continue
        seen.append(room)
        try:
            devices += room.list_devices()
        except WarptileError as error:
            reasons.append((prefix, str(error)))
    return Survey(tuple(devices), tuple(reasons))


def list_devices() -> list[DeviceEntry]:
    """Devices of every runtime, in the order of their ids. `survey` also says why a runtime has none."""
    return list(survey().devices)


def _room(text: str) -> Room:
    prefix = text.partition(":")[0]
    known = rooms()
    if prefix not in known:
        raise UnusableInput(f"device {text!r} has no known prefix; write one of {', '.join(f'{p}:0' for p in known)}")
    return known[prefix]
