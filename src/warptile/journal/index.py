"""An SQLite index over the journal's lines: a cache that can be dropped and rebuilt at any time."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from warptile.contracts import UnusableInput
from warptile.journal.entries import Entry
from warptile.journal.migrations import migrated
from warptile.journal.store import EDITED, Journal, JournalWarning, read_lines

_VERSION = 2
_WAIT_S = 30.0
_WORDS = 20_000
_NO_WORDS = frozenset({"race", "samples", "limits", "workload", "check", "source", "sources", "artefact"})
_TABLES = """
CREATE TABLE files (name TEXT PRIMARY KEY, bytes INTEGER, lines INTEGER);
CREATE TABLE lines (
    file TEXT, line INTEGER, offset INTEGER, time TEXT, run TEXT, kind TEXT, device TEXT, format TEXT,
    n INTEGER, k INTEGER, m INTEGER, tile TEXT, outcome TEXT, seq INTEGER, kernels TEXT, words TEXT,
    PRIMARY KEY (file, line)
);
CREATE INDEX by_kind ON lines (kind, time);
"""


@dataclass(frozen=True)
class Hit:
    """One indexed line: what it is about, and where its whole text stands (`file` within the journal's folder).

    kernels: names of all kernels it names, with a space around each; words: its texts, for searching.
    """

    file: str
    line: int
    offset: int
    time: str
    run: str
    kind: str
    device: str
    format: str
    n: int
    k: int
    m: int
    tile: str
    outcome: str
    seq: int
    kernels: str
    words: str = field(default="", repr=False)


def _make(connection: sqlite3.Connection) -> None:
    """Make the tables in one transaction, unless another process has made them while this one waited for its turn."""
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall():
            connection.execute(f'DROP TABLE "{name}"')
        for statement in filter(str.strip, _TABLES.split(";")):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.commit()


class Index:
    """Index of the journal at `path` (":memory:" keeps nothing). Brought up to date by `refresh`.

    A damaged or older index is dropped and made anew: it holds nothing the lines do not.
    """

    def __init__(self, path: Path | str) -> None:
        self._connection = self._open(str(path))
        self.warnings: list[JournalWarning] = []

    @staticmethod
    def _open(path: str) -> sqlite3.Connection:
        for attempt in (0, 1):
            connection = None
            try:
                connection = sqlite3.connect(path, timeout=_WAIT_S)
                if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                    _make(connection)
                connection.execute("SELECT count(*) FROM files, lines LIMIT 1").fetchone()
                return connection
            except sqlite3.DatabaseError as error:
                if connection is not None:
                    connection.close()
                busy = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
                if attempt or busy or path == ":memory:" or not Path(path).is_file():
                    raise UnusableInput(f"journal index {path}: {error}") from None
                Path(path).unlink()
        raise AssertionError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def rebuild(self, journal: Journal) -> None:
        """Forget everything indexed and read every line anew."""
        with self._connection:
            self._connection.execute("DELETE FROM files")
            self._connection.execute("DELETE FROM lines")
        self.refresh(journal)

    def refresh(self, journal: Journal) -> None:
        """Index the lines written since; files that shrank or vanished are taken out first.

        Raises UnusableInput as `Journal.read` does, or where the index itself cannot be written.
        """
        try:
            with self._connection:
                self._refresh(journal)
        except sqlite3.DatabaseError as error:
            raise UnusableInput(f"journal index: {error}") from None

    def _refresh(self, journal: Journal) -> None:
        execute = self._connection.execute
        known = {name: (size, lines) for name, size, lines in execute("SELECT name, bytes, lines FROM files")}
        present = {file.name: file for file in journal.files()}
        for name, (size, _) in list(known.items()):
            if name not in present or present[name].stat().st_size < size:
                execute("DELETE FROM lines WHERE file = ?", (name,))
                execute("DELETE FROM files WHERE name = ?", (name,))
                del known[name]
        for name, file in present.items():
            end, number = known.get(name, (0, 0))
            for found in read_lines(file, end, number):
                if isinstance(found, JournalWarning):
                    self.warnings.append(found)
                    if found.torn:
                        break
                    number = found.line
                else:
                    row = (name, found.number, found.offset, *_columns(found.entry))
                    execute(f"INSERT OR REPLACE INTO lines VALUES ({','.join('?' * len(row))})", row)
                    number = found.number
                    if found.edited:
                        self.warnings.append(JournalWarning(file, found.number, EDITED, found.end))
                end = found.end
            execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", (name, end, number))

    def find(self, limit: int = 50, **equal: str | int) -> list[Hit]:
        """The newest lines whose columns equal the given values (kind=, device=, format=, n=, k=, m=, run=, ...)."""
        return self.search("", "", "", "", "", limit, **equal)

    def search(
        self,
        text: str = "",
        kernel: str = "",
        on: str = "",
        since: str = "",
        until: str = "",
        limit: int = 50,
        **equal: str | int,
    ) -> list[Hit]:
        """The newest lines that hold every word of `text` and name `kernel` (in full, or without its runtime).

        on: part of the device's name. since, until: the first and last UTC day or time, such as "2026-11-30". Letters'
        case does not matter. Other columns are to equal the given values.
        """
        unknown = [name for name in equal if name not in Hit.__dataclass_fields__]
        if unknown:
            raise UnusableInput(f"journal: no column {unknown[0]!r}")
        where: list[str] = [f"{name} = ? COLLATE NOCASE" for name in equal]
        values: list[str | int] = list(equal.values())
        wanted = [("words", f"%{_escaped(word)}%") for word in text.split()]
        wanted += [("kernels", f"%{'' if '.' in kernel else '.'}{_escaped(kernel)} %")] if kernel else []
        wanted += [("device", f"%{_escaped(on)}%")] if on else []
        for column, pattern in wanted:
            where.append(f"{column} LIKE ? ESCAPE '\\'")
            values.append(pattern)
        for sign, moment in ((">=", since), ("<=", until)):
            if moment:
                where.append(f"substr(time, 1, {len(moment)}) {sign} ?")
                values.append(moment)
        clause = f" WHERE {' AND '.join(where)}" if where else ""
        order = "ORDER BY time DESC, file DESC, line DESC LIMIT ?"
        rows = self._connection.execute(f"SELECT * FROM lines{clause} {order}", (*values, limit))
        return [Hit(*row) for row in rows]


def read_hit(folder: Path, hit: Hit) -> Entry:
    """The whole entry an index line points at, read from its file, in this schema's form.

    Raises UnusableInput where the index, which is a file like others, names no file of the journal's folder.
    """
    if Path(hit.file).name != hit.file or not hit.file.endswith(".jsonl"):
        raise UnusableInput(f"journal index: {hit.file!r:.80} is no file of the journal")
    with (folder / hit.file).open("rb") as stream:
        stream.seek(hit.offset)
        entry: Entry = json.loads(stream.readline())
    return migrated(entry, Path(hit.file).stem, hit.line)


def _columns(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    race = _object(entry.get("race"))
    challenger = _object(race.get("challenger"))
    problem = _object(entry.get("problem") or challenger.get("problem") or entry.get("key"))
    point = _object(entry.get("point"))
    arms = entry.get("arms")
    believed = arms[-1] if entry["kind"] == "hypothesis" and isinstance(arms, list) and arms else ""
    tile = entry.get("tile") or challenger.get("tile") or believed or entry.get("challenger") or point.get("tile") or ""
    return (
        _text(entry.get("time", "")),
        _text(entry.get("run", "")),
        _text(entry["kind"]),
        _text(_object(entry.get("identity")).get("device", "")),
        _text(problem.get("format", "")),
        *(_whole(problem.get(name, point.get(name))) for name in ("n", "k", "m")),
        _text(tile),
        _text(_outcome(entry)),
        _whole(entry.get("seq")),
        _text(_kernels(entry)),
        _text(" ".join(_texts(entry))[:_WORDS]),
    )


def _texts(value: Any) -> Iterator[str]:
    """Every text of an entry but hashes, limits and samples, tiles once each."""
    seen: set[str] = set()
    todo: list[Any] = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, Mapping):
            todo += [inner for name, inner in reversed(list(each.items())) if name not in _NO_WORDS]
        elif isinstance(each, list):
            todo += reversed(each)
        elif isinstance(each, str) and each not in seen:
            seen.add(each)
            yield each


def _kernels(entry: Mapping[str, Any]) -> str:
    """Kernels of every tile that an entry names, a space around each."""
    names = dict.fromkeys(
        text.partition(":")[0] for text in _texts(entry) if re.match(r"[a-z_]+\.[a-z0-9_]+:[a-z_0-9]+=", text)
    )
    return f" {' '.join(names)} " if names else ""


def _escaped(text: str) -> str:
    return re.sub(r"([%_\\])", r"\\\1", text)


def _outcome(entry: Mapping[str, Any]) -> str:
    verdict, race = entry.get("verdict"), entry.get("race")
    if isinstance(verdict, Mapping):
        return "right" if verdict.get("right") is True else f"wrong: {verdict.get('failed', '')}"
    if isinstance(race, Mapping):
        ratio = race.get("ratio")
        return f"{entry.get('stage', '')} {ratio:.3f}x" if isinstance(ratio, float) else str(entry.get("stage", ""))
    decision = _object(entry.get("decision"))
    if entry["kind"] == "hypothesis":
        said = _object(entry.get("predicted"))
        ratio = said.get("ratio")
        return f"{said.get('expect', '')} {ratio:.3f}x" if isinstance(ratio, float) else str(said.get("expect", ""))
    if entry["kind"] == "confirmation":
        return "right" if entry.get("right") is True else "not confirmed"
    if entry["kind"] == "race":
        arms = entry.get("arms")
        return f"{entry.get('stage', '')} {len(arms) if isinstance(arms, list) else 0} tiles"
    return str(entry.get("outcome") or decision.get("outcome") or entry.get("event") or entry.get("action") or "")


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    """As text that a database takes: half a surrogate pair, which JSON may hold, as its escape."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def _whole(value: Any) -> int:
    return value if type(value) is int and abs(value) < 1 << 63 else 0
