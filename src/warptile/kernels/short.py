"""A tile in short, as `--tile` and `--arms` read it back."""

from __future__ import annotations

import dataclasses

from warptile.contracts import UnusableInput
from warptile.kernels import parse_tile


def short_tile(full: str) -> str:
    """Bare kernel name, positional values, other fields where not default; as it is where no kernel here knows it."""
    try:
        kernel, parsed = parse_tile(full)
    except UnusableInput:
        return full
    order = parsed.positional or tuple(parsed.fields())
    defaults = {field.name: field.default for field in dataclasses.fields(parsed)}
    values = parsed.fields()
    rest = [f"{name}={value}" for name, value in values.items() if name not in order and value != defaults[name]]
    return f"{kernel.name.split('.', 1)[-1]}:" + ",".join([*(str(values[name]) for name in order), *rest])
