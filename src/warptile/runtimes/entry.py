"""One line of a device listing, and how a text picks one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from warptile.contracts.errors import UnusableInput


@dataclass(frozen=True)
class DeviceEntry:
    """A device that can be opened. id: the text `open_device` takes ("vulkan:0"); type: what the driver calls it."""

    id: str
    name: str
    driver: str
    type: str
    runtime: str

    def to_json(self) -> dict[str, str]:
        """Plain dictionary."""
        return asdict(self)


def pick(text: str, entries: Sequence[DeviceEntry]) -> int:
    """Index of the entry that `PREFIX`, `PREFIX:NUMBER` or `PREFIX:PART_OF_NAME` means.

    A name matches without regard to case; three digits or more that are no device's number are part of a name
    ("vulkan:9060"). Raises UnusableInput where none or several match.
    """
    prefix, _, wanted = text.partition(":")
    there = "; ".join(f"{e.id} {e.name}" for e in entries) or "none"
    if not wanted:
        if not entries:
            raise UnusableInput(f"no {prefix} device on this machine")
        return 0
    if wanted.isdecimal() and int(wanted) < len(entries):
        return int(wanted)
    short_number = wanted.isdecimal() and len(wanted) < 3
    matches = [i for i, e in enumerate(entries) if wanted.casefold() in e.name.casefold() and not short_number]
    if not matches:
        raise UnusableInput(f"no device {text}; there is: {there}")
    if len(matches) > 1:
        raise UnusableInput(
            f"{text} means several: " + "; ".join(f"{entries[i].id} {entries[i].name}" for i in matches)
        )
    return matches[0]
