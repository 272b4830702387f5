"""Values of the reader: numbers, text, bool, and the classes here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Value = Any


class NotUnderstood(Exception):
    """A construct outside the part of C++ that is read; `str` says what, `line` where."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what, self.line = what, line


@dataclass(frozen=True)
class Unknown:
    """A value that could not be worked out: why, and the line."""

    why: str
    line: int


@dataclass(frozen=True)
class Symbol:
    """A name that stands for itself: an enumerator, a type, an array of machine code."""

    name: str


@dataclass(eq=False)
class Sequence:
    """A vector, array or initializer list; line: of the braces that first held its values."""

    items: list[Value]
    line: int = 0

    def copy(self) -> Sequence:
        """Another one with the same items."""
        return Sequence(list(self.items), self.line)


@dataclass(eq=False)
class Record:
    """A structure; order: its members as declared; missing: what a member that was never set is."""

    members: dict[str, Value] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    missing: Callable[[str, int], Value] | None = None


@dataclass(eq=False)
class Mapping:
    """A std::map; made: what a key that is not there yet gets."""

    items: dict[Value, Value] = field(default_factory=dict)
    made: Callable[[], Value] | None = None


def truth(value: Value) -> bool | Unknown:
    """Whether a value counts as true."""
    if isinstance(value, Unknown):
        return value
    if isinstance(value, bool | int | float):
        return bool(value)
    if isinstance(value, Record):
        return True
    return Unknown(f"the truth of {described(value)}", 0)


def described(value: Value) -> str:
    """A value in few words."""
    if isinstance(value, Symbol):
        return value.name
    if isinstance(value, Unknown):
        return value.why
    return type(value).__name__ if isinstance(value, Sequence | Record | Mapping) else repr(value)
