"""How values look on a terminal: numbers with units, tiles in short, one JSON document."""

from __future__ import annotations

import dataclasses
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
from warptile.contracts import Problem, UnusableInput
from warptile.gguf.escape import escaped, printable
from warptile.journal import to_json
from warptile.kernels import parse_tile
from warptile.race.statistics import UNBOUNDED


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


def text(value: str, style: str = "") -> Text:
    """Outside text as it is: never markup, unprintable characters escaped."""
    return Text(escaped(value), style=style)


def line(value: str, style: str = "") -> Text:
    """As `text`, however long it is."""
    return Text(printable(value), style=style)


def wrapping(value: str, style: str = "") -> Pieces:
    """Outside text whole, never markup; it breaks after commas and spaces where it does not fit."""
    return Pieces(printable(value), style)


def duration(seconds: float | None) -> str:
    """Three digits and a unit: "21.6 ms"."""
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size or unit == "us":
            return f"{significant(seconds / size)} {unit}"
    raise AssertionError


def significant(value: float) -> str:
    """Three significant digits without an exponent."""
    if value >= 100 or value == 0:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def tile(full: str) -> str:
    """A tile in short, as `--tile` reads it back: bare kernel name, positional values, other fields where not default.

    A tile of a kernel that is not here is shown as it is.
    """
    try:
        kernel, parsed = parse_tile(full)
    except UnusableInput:
        return full
    order = parsed.positional or tuple(parsed.fields())
    defaults = {field.name: field.default for field in dataclasses.fields(parsed)}
    values = parsed.fields()
    rest = [f"{name}={value}" for name, value in values.items() if name not in order and value != defaults[name]]
    return f"{kernel.name.split('.', 1)[-1]}:" + ",".join([*(str(values[name]) for name in order), *rest])


def matmul(problem: Problem) -> str:
    """A problem without its m; its type where that is not fp32."""
    experts = ""
    if problem.grouped:
        kind = "recorded" if problem.routing.startswith("recorded") else problem.routing
        experts = f" e={problem.experts}" + (f" {kind}" if kind not in ("", "uniform") else "")
    kind = f" {problem.x_dtype}" if problem.x_dtype != "fp32" else ""
    return f"{problem.format} n={problem.n} k={problem.k}{experts}{kind}"


def interval(low: float, high: float) -> str:
    """ "[5.67, 7.17]"; "few rounds" where there were too few for an interval."""
    return f"[{low:.2f}, {high:.2f}]" if high < UNBOUNDED else "few rounds"


def ratio(middle: float, low: float, high: float) -> str:
    """ "6.51x [5.67, 7.17]"."""
    return f"{middle:.2f}x {interval(low, high)}"


def span(seconds: float) -> str:
    """ "19 s", "3 min 41 s"."""
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


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


def short(words: str) -> str:
    """Words of a progress line, two spaces apart, with every tile in short."""
    return "  ".join(tile(word) if ":" in word else word for word in words.split("  "))


def clock(seconds: float) -> str:
    """Minutes and seconds: "4:05"."""
    whole = int(seconds)
    return f"{whole // 60}:{whole % 60:02d}"
