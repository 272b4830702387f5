"""Tokens of C++ and GLSL, each with its line."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>\.?\d(?:[eE][+-](?=\d)|[\w.])*)
      | (?P<string>"(?:\\.|[^"\\])*")
      | (?P<char>'(?:\\.|[^'\\])*')
      | (?P<name>[A-Za-z_]\w*)
      | (?P<mark>\#\#|<<=|>>=|->|::|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^~!=<>?:;,.(){}\[\]\#@\\`$])
    """,
    re.VERBOSE,
)
_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)


class Token(NamedTuple):
    """kind: "name", "number", "string", "char" or "mark"; hidden: macros that made it and may not expand it again."""

    kind: str
    text: str
    line: int
    hidden: frozenset[str] = frozenset()

    def at(self, line: int) -> Token:
        """The token on another line."""
        return self._replace(line=line)


@lru_cache(maxsize=64)
def without_comments(text: str) -> str:
    """The text with comments blanked, line by line as long as before."""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        return "\n" * found.count("\n") + " " if found.startswith("/") else found

    return _COMMENT.sub(blank, text)


def tokenize(text: str, line: int = 1) -> list[Token]:
    """Tokens of text without comments; a character that begins none is a mark of its own."""
    return [Token(kind, part, line + below) for kind, part, below in _pieces(text)]


@lru_cache(maxsize=1 << 15)
def _pieces(text: str) -> tuple[tuple[str, str, int], ...]:
    """(kind, text, lines below the first) of each token: variants of a shader share most of their lines."""
    found: list[tuple[str, str, int]] = []
    position = below = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            found.append(("mark", text[position], below))
            position += 1
            continue
        kind = match.lastgroup or "mark"
        if kind != "space":
            found.append((kind, match[0], below))
        below += match[0].count("\n")
        position = match.end()
    return tuple(found)


def number(text: str) -> int | float:
    """The value of a number's text. Raises ValueError where it is none."""
    if text[:2].lower() == "0x":
        return int(text.rstrip("uUlL"), 16)
    plain = text.rstrip("uUlLfFhH")
    return float(plain) if any(c in plain for c in ".eE") else int(plain)
