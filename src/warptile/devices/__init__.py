"""What known cards can hold: one TOML file a card, found by scanning this folder.

`by_name` reads one through the eyes of one runtime; live devices report their own limits instead.
"""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable

from warptile.contracts import Limits, UnusableInput
from warptile.devices.file import read_limits


def names() -> tuple[str, ...]:
    """Names of the cards with a data file, sorted."""
    return tuple(sorted(_files()))


def by_name(name: str, runtime: str = "vulkan") -> Limits:
    """Limits of a card, by its file's name in any case, as `runtime` sees them ("vulkan", "cuda", "hip").

    Raises UnusableInput for a card without a file (listing those that have one), a runtime the card's file has no
    table for, or a malformed file.
    """
    files = _files()
    path = files.get(name.strip().lower())
    if path is None:
        raise UnusableInput(f"no data file for device {name!r}; there are files for {', '.join(sorted(files))}")
    return read_limits(path.read_text(encoding="utf-8"), runtime, f"{path.name}")


def _files() -> dict[str, Traversable]:
    folder = resources.files(__name__)
    return {entry.name.removesuffix(".toml"): entry for entry in folder.iterdir() if entry.name.endswith(".toml")}
