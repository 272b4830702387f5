"""A table made anew from the journal, which is the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warptile.contracts import Identity, UnusableInput
from warptile.journal import Journal, from_json
from warptile.tables.pipelines import PipelineKey, Pipelines
from warptile.tables.points import Key, Point
from warptile.tables.table import Table, table_path

_PIPELINES = ("pipelines", "pipelines forgotten")


def rebuild_from(journal: Journal, folder: Path, identity: Identity) -> Table:
    """Every table entry of the journal for this device, replayed in order; nothing is saved.

    The file that stands in `folder` is not read, so a corrupt one can be moved away and replaced.
    Raises UnusableInput as `Journal.read` does, and for a table entry whose fields cannot be read.
    """
    table = Table(table_path(folder, identity), identity)
    for entry in journal.read().entries:
        who = entry.get("identity")
        if entry["kind"] == "table" and isinstance(who, dict) and _same(who, identity):
            try:
                key = from_json(Key, entry.get("key"))
                point = None if entry.get("action") == "forget" else from_json(Point, entry.get("point"))
            except ValueError as error:
                raise UnusableInput(f"journal run {entry.get('run')}: table entry: {error}") from None
            table.apply(key, point)
        elif entry.get("event") in _PIPELINES and isinstance(who, dict) and _same(who, identity):
            try:
                if entry["event"] == "pipelines":
                    table.put_pipelines(from_json(Pipelines, entry.get("pipelines")))
                else:
                    table.forget_pipelines(from_json(PipelineKey, entry.get("key")))
            except ValueError as error:
                raise UnusableInput(f"journal run {entry.get('run')}: pipelines: {error}") from None
    return table


def _same(who: dict[str, Any], identity: Identity) -> bool:
    return (who.get("device"), who.get("runtime")) == (identity.device, identity.runtime)
