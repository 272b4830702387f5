"""Two entries side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from warptile.cli import show
from warptile.cli.tune_view import grid
from warptile.journal.merge import Conflict

MOST = 20
_LONGEST = 400


def conflicts(console: Console, title: str, found: Sequence[Conflict]) -> None:
    """Each conflict's fields that differ, this journal's beside the other one's."""
    if not found:
        return
    console.print()
    console.print(show.line(f"{len(found)} {title}", "bold yellow"), soft_wrap=True)
    for conflict in found[:MOST]:
        console.print(show.line(conflict.about), soft_wrap=True)
        table = grid()
        table.add_column("field", no_wrap=True)
        table.add_column("here")
        table.add_column("there")
        for name, ours, theirs in differences(conflict.ours, conflict.theirs):
            table.add_row(show.text(name), show.wrapping(ours), show.wrapping(theirs))
        console.print(table)
    if len(found) > MOST:
        console.print(show.line(f"and {len(found) - MOST} more (--json has all)"))


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str, str]]:
    """(field, this journal's value, the other one's) of every leaf that differs, in order."""
    rows: list[tuple[str, str, str]] = []
    for name in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(name), theirs.get(name)
        if one == other or name == "check":
            continue
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            rows += differences(one, other, f"{prefix}{name}.")
        else:
            rows.append((prefix + name, _value(one), _value(other)))
    return rows


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
