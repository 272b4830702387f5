"""What a block's bytes mean: one module a format, each exporting `FORMAT`.

Modules are found by scanning, so adding a format touches its own file only; names with a leading underscore
are shared helpers.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from warptile.contracts.errors import UnusableInput
from warptile.formats._format import Format

__all__ = ["Format", "all_formats", "by_gguf_id", "by_name"]


@functools.cache
def all_formats() -> Mapping[str, Format]:
    """Every format by name, in order of GGUF id."""
    found: list[Format] = []
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            found.append(importlib.import_module(f"{__name__}.{module.name}").FORMAT)
    return MappingProxyType({f.name: f for f in sorted(found, key=lambda f: f.gguf_id)})


def by_name(name: str) -> Format:
    """The format of a name such as "Q4_K". Raises UnusableInput for an unknown one."""
    try:
        return all_formats()[name]
    except KeyError:
        raise UnusableInput(f"no format {name!r}; formats are {', '.join(all_formats())}") from None


def by_gguf_id(id: int) -> Format:
    """The format of a GGUF type id. Raises UnusableInput for an unknown one."""
    for found in all_formats().values():
        if found.gguf_id == id:
            return found
    known = ", ".join(f"{f.gguf_id} {f.name}" for f in all_formats().values())
    raise UnusableInput(f"no format with GGUF type id {id}; known are {known}")
