"""What running code keeps: scopes, closures, ways out of a block, notes of what was not understood."""

from __future__ import annotations

from dataclasses import dataclass, field

from warptile.llama_cpp.cpp import syntax
from warptile.llama_cpp.cpp.values import Record, Value


class Left(Exception):
    """A `return`, `break` or `continue` on its way."""

    def __init__(self, how: str, value: Value) -> None:
        self.how, self.value = how, value


class Thrown(Exception):
    """A `throw` was reached; `str` is its text."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(text)
        self.line = line


@dataclass
class Scope:
    """Names of a block, and the scope around it."""

    outer: Scope | None = None
    names: dict[str, Value] = field(default_factory=dict)

    def holder(self, name: str) -> Scope | None:
        """The innermost scope that has a name."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.outer
        return scope


@dataclass(frozen=True)
class Closure:
    """A function and the scope it was made in."""

    function: syntax.Function
    scope: Scope


@dataclass(frozen=True)
class Note:
    """Something not understood: what and on which line."""

    line: int
    what: str


def records(scope: Scope) -> list[Record]:
    """Structures that names of a scope and of those around it hold."""
    found: list[Record] = []
    inner: Scope | None = scope
    while inner is not None:
        found += [value for value in inner.names.values() if isinstance(value, Record)]
        inner = inner.outer
    return found
