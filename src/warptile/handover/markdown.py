"""Cells, tables and numbers of the document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from warptile.gguf.escape import printable
from warptile.race.statistics import UNBOUNDED


def cell(text: str) -> str:
    """Outside text on one line of a table: unprintable characters and column bars escaped, folders left out."""
    return printable(nameless(" ".join(text.split()))).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; columns that are empty in every row are left out."""
    kept = [[cell(each) for each in row] for row in rows]
    shown = [i for i in range(len(head)) if any(row[i] for row in kept)]
    lines = ["| " + " | ".join(head[i] for i in shown) + " |", "|" + "---|" * len(shown)]
    return [*lines, *("| " + " | ".join(row[i] for i in shown) + " |" for row in kept)]


def ref(entry: str) -> str:
    """A reference as short as `journal show` takes it."""
    return f"`{entry.rpartition('-')[2]}`"


def ratio(middle: float, low: float, high: float) -> str:
    """`1.163x [1.161, 1.167]`."""
    return f"{middle:.3f}x {f'[{low:.3f}, {high:.3f}]' if high < UNBOUNDED else '(too few rounds for an interval)'}"


def time(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def nameless(line: str) -> str:
    """A line without the folders that its files lie in: "/a/b/c.jsonl" is "c.jsonl", "A/A" stays."""
    return re.sub(r"(?<![\w./])/(?:[^\s/'\"]+/)+([^\s/'\"]*)", r"\1", line)
