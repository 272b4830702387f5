"""Reading one device file: common keys, then one table a runtime that adds to or replaces them."""

from __future__ import annotations

import dataclasses
import tomllib
from typing import Any

from warptile.contracts import Limits, UnusableInput
from warptile.contracts.limits import CooperativeMatrix, RegisterBand

RUNTIMES = ("vulkan", "cuda", "hip")
KINDS = ("gpu", "software")
_DERIVED = frozenset({"runtime", "live", "arrangement", "activations"})
_ARRANGEMENTS = {"vulkan": "rows", "cuda": "quads", "hip": "quads"}
_ACTIVATIONS = {runtime: "fp16" if kept == "quads" else "fp32" for runtime, kept in _ARRANGEMENTS.items()}
_REQUIRED = frozenset(
    f.name
    for f in dataclasses.fields(Limits)
    if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING and f.name not in _DERIVED
)
_FIELDS = frozenset(f.name for f in dataclasses.fields(Limits)) - _DERIVED
_INTEGERS = frozenset(f.name for f in dataclasses.fields(Limits) if f.type == "int")
_FLOATS = frozenset(f.name for f in dataclasses.fields(Limits) if f.type == "float")


def read_limits(text: str, runtime: str, where: str) -> Limits:
    """`text` as `runtime` sees the device; `where` names the file in errors.

    Raises UnusableInput: not TOML, an unknown or missing key, a value of the wrong type or below 0, a runtime
    without a table.
    """
    document = _document(text, where)
    tables = {key: value for key, value in document.items() if key in RUNTIMES}
    for key, value in tables.items():
        if not isinstance(value, dict):
            raise UnusableInput(f"device file {where}: {key} must be a table")
    if runtime not in tables:
        known = ", ".join(f"[{key}]" for key in tables) or "none"
        raise UnusableInput(f"device file {where}: no table [{runtime}]; it has {known}")
    merged = {key: value for key, value in document.items() if key not in RUNTIMES} | tables[runtime]
    if unknown := sorted(merged.keys() - _FIELDS):
        raise UnusableInput(f"device file {where}: unknown key {', '.join(unknown)}")
    if missing := sorted(_REQUIRED - merged.keys()):
        raise UnusableInput(f"device file {where}: missing {', '.join(missing)} for {runtime}")
    values = {key: _value(key, value, where) for key, value in merged.items()}
    limits = Limits(runtime=runtime, arrangement=_ARRANGEMENTS[runtime], activations=_ACTIVATIONS[runtime], **values)
    if limits.kind not in KINDS:
        raise UnusableInput(f"device file {where}: kind is {limits.kind!r}, must be one of {', '.join(KINDS)}")
    if limits.subgroup not in limits.subgroup_sizes:
        raise UnusableInput(f"device file {where}: subgroup {limits.subgroup} is not in {limits.subgroup_sizes}")
    return limits


def runtimes(text: str, where: str) -> frozenset[str]:
    """The runtimes a file has a table for. Raises UnusableInput where it is not TOML."""
    return frozenset(_document(text, where).keys() & set(RUNTIMES))


def _document(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnusableInput(f"device file {where}: not TOML: {error}") from None


def _value(key: str, value: Any, where: str) -> Any:
    def fail(expected: str) -> UnusableInput:
        return UnusableInput(f"device file {where}: {key} must be {expected}, not {value!r}")

    if key in _INTEGERS:
        if not _whole(value):
            raise fail("a whole number, 0 or more")
        return value
    if key in _FLOATS:
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise fail("a number, 0 or more")
        return float(value)
    if key in ("subgroup_sizes", "max_grid"):
        if not isinstance(value, list) or not all(_whole(v) and v > 0 for v in value):
            raise fail("a list of whole numbers above 0")
        if key == "max_grid" and len(value) != 3:
            raise fail("three whole numbers")
        return tuple(value)
    if key == "features":
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise fail("a list of names")
        return frozenset(value)
    if key in ("register_bands", "cooperative_matrices"):
        row = RegisterBand if key == "register_bands" else CooperativeMatrix
        fields = [f.name for f in dataclasses.fields(row)]
        if not isinstance(value, list) or not all(isinstance(v, dict) and sorted(v) == sorted(fields) for v in value):
            raise fail(f"a list of tables with {', '.join(fields)}")
        return tuple(row(**v) for v in value)
    if not isinstance(value, str):
        raise fail("text")
    return value


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
