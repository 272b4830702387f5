"""The contracts' dataclasses as JSON values and back, without naming any of them."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def to_json(value: Any, words: bool = True) -> Any:
    """A JSON value: dataclasses become objects, tuples and sets lists, numbers JSON cannot hold words.

    inf, -inf and nan become "Infinity", "-Infinity" and "NaN", which `from_json` reads back; null without `words`, for
    readers that take a field for a number or nothing.
    Raises TypeError for anything that is no dataclass, mapping, sequence, set, string, number or None.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        if not words:
            return None
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name), words) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): to_json(v, words) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(v, words) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted(to_json(v, words) for v in value)
    item = getattr(value, "item", None)  # numpy scalars
    if callable(item):
        return to_json(item(), words)
    raise TypeError(f"{type(value).__name__} has no JSON form")


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def from_json(kind: type[T], value: Any) -> T:
    """The value of type `kind` that `to_json` wrote as `value`; unknown fields are passed over.

    kind: a dataclass, tuple[...], frozenset[...], X | None, or int, float, str, bool.
    Raises ValueError, in one line, where the value has another shape.
    """
    return typing.cast(T, _read(kind, value))


def _read(kind: Any, value: Any) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        return _read(next(a for a in arguments if a is not type(None)), value)
    if origin in (tuple, frozenset):
        if not isinstance(value, list):
            raise ValueError(f"a list was expected, not {value!r:.40}")
        if origin is frozenset or arguments[-1] is Ellipsis:
            return origin(_read(arguments[0], v) for v in value)
        if len(value) != len(arguments):
            raise ValueError(f"{len(arguments)} values were expected, not {len(value)}")
        return tuple(_read(a, v) for a, v in zip(arguments, value, strict=True))
    if dataclasses.is_dataclass(kind):
        return _read_fields(typing.cast(type, kind), value)
    if kind is float and (isinstance(value, (int, float)) or value in ("NaN", "Infinity", "-Infinity")):
        if not isinstance(value, bool):
            return float(value)
    elif kind in (int, str, bool) and type(value) is kind:
        return value
    raise ValueError(f"{getattr(kind, '__name__', kind)} was expected, not {value!r:.40}")


def _read_fields(kind: type, value: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{kind.__name__}: an object was expected, not {value!r:.40}")
    found: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in value:
            try:
                found[field.name] = _read(_hints(kind)[field.name], value[field.name])
            except ValueError as error:
                raise ValueError(f"{kind.__name__}.{field.name}: {error}") from None
    try:
        return kind(**found)
    except TypeError:
        raise ValueError(f"{kind.__name__}: a field is missing") from None
