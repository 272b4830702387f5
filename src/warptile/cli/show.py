"""How values look on a terminal: consoles, outside text made harmless, one JSON document, command lines."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from warptile.cli.wrap import Pieces
from warptile.gguf.escape import escaped, printable
from warptile.journal import to_json
from warptile.words import clock, duration, interval, matmul, ratio, short, significant, span, tile

__all__ = [
    "clock",
    "command",
    "duration",
    "err",
    "interval",
    "line",
    "matmul",
    "out",
    "path",
    "print_json",
    "print_text",
    "program",
    "ratio",
    "short",
    "significant",
    "span",
    "text",
    "tile",
    "wrapping",
]


class _Results(Console):
    """stdout: where its reader is gone, there is nothing left to do (`cli.run` ends quietly)."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class _Progress(Console):
    """stderr: where its reader is gone, the work goes on unwatched."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def out() -> Console:
    """The console of results: stdout; 100 columns where it is no terminal and COLUMNS does not say otherwise."""
    console = _Results(highlight=False)
    return console if console.is_terminal or "COLUMNS" in os.environ else _Results(highlight=False, width=100)


def err() -> Console:
    """The console of progress: stderr."""
    return _Progress(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on stdout; a number that is not finite is null."""
    try:
        json.dump(to_json(value, words=False), sys.stdout, indent=1, allow_nan=False, ensure_ascii=False)
        sys.stdout.write("\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Without its number: typer takes one with it for a "no" and exits 1.
        raise BrokenPipeError from None


def print_text(value: str) -> None:
    """A whole text on stdout, as it is."""
    try:
        sys.stdout.write(value)
        sys.stdout.flush()
    except BrokenPipeError:
        raise BrokenPipeError from None


def text(value: str, style: str = "") -> Text:
    """Outside text as it is: never markup, unprintable characters escaped."""
    return Text(escaped(value), style=style)


def line(value: str, style: str = "") -> Text:
    """As `text`, however long it is."""
    return Text(printable(value), style=style)


def wrapping(value: str, style: str = "") -> Pieces:
    """Outside text whole, never markup; it breaks after commas and spaces where it does not fit."""
    return Pieces(printable(value), style)


def path(where: Path | str) -> str:
    """A path as the working directory sees it, where that is shorter."""
    try:
        relative = os.path.relpath(where)
    except ValueError:  # another drive
        return str(where)
    return min(str(where), relative, key=len)


def program() -> str:
    """How this program was called, as a shell would find it again: "warptile", or the path of its script."""
    called = Path(sys.argv[0])
    if called.name != "warptile" or not called.is_file():
        return "warptile"
    found = shutil.which("warptile")
    return "warptile" if found is not None and Path(found).samefile(called) else path(called)


def command(*words: str) -> str:
    """A command line of this program that can be pasted into a shell."""
    return shlex.join([program(), *words])
