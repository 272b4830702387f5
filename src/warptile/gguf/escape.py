"""Names and paths that come from outside, made safe to show."""

from __future__ import annotations

from pathlib import Path

_SHOWN = 96


def escaped(name: str) -> str:
    """`name` as one printable line: what cannot be printed is escaped, what is longer than 96 characters is cut.

    Control characters, line breaks, direction marks and lone surrogates become backslash escapes.
    """
    return printable(name if len(name) <= _SHOWN else name[: _SHOWN - 3] + "...")


def shown(path: Path) -> str:
    """The whole path as one printable line."""
    return printable(str(path))


def printable(text: str) -> str:
    """The whole text as one printable line."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
