"""What known cards can hold: one TOML file a card, found by scanning this folder.

`by_name` reads one through the eyes of one runtime; live devices report their own limits instead.
"""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable

from warptile.contracts import Limits, UnusableInput
from warptile.devices.file import read_limits, runtimes


def names(runtime: str | None = "vulkan") -> tuple[str, ...]:
    """Names of the cards whose data file has a table for `runtime` (None: any), sorted."""
    files = _files()
    return tuple(
        name
        for name in sorted(files)
        if runtime is None or runtime in runtimes(files[name].read_text(encoding="utf-8"), files[name].name)
    )


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


def compile_only(name: str) -> Limits:
    """Limits of a card as Triton sees it, by its file's name, or by its architecture ("gfx942", "sm_90"): those of the
    first card, by name, that has it.

    Raises UnusableInput for a card without a file, one that Triton has no compiler for, or an architecture of no card.
    """
    wanted = name.strip().lower()
    files = _files()
    if wanted in files:
        tables = runtimes(files[wanted].read_text(encoding="utf-8"), files[wanted].name)
        found = next((r for r in ("cuda", "hip") if r in tables), None)
        if found is None:
            raise UnusableInput(f"device {name!r} has no CUDA or ROCm compiler: its file has no [cuda] or [hip] table")
        return by_name(wanted, found)
    for card in sorted(files):
        for runtime in runtimes(files[card].read_text(encoding="utf-8"), files[card].name) & {"cuda", "hip"}:
            limits = by_name(card, runtime)
            if wanted in limits.features and wanted.startswith(("sm_", "gfx")):
                return limits
    raise UnusableInput(
        f"no data file for device or architecture {name!r}; there are files for {', '.join(sorted(files))}"
    )


def _files() -> dict[str, Traversable]:
    folder = resources.files(__name__)
    return {entry.name.removesuffix(".toml"): entry for entry in folder.iterdir() if entry.name.endswith(".toml")}
