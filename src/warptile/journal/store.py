"""Append-only JSON lines: one file a run, one `write` and `fsync` a line.

A process that dies while it writes leaves at most a last line without its newline; readers report it and pass
over it, and since every run opens a file of its own, nothing is ever written after it.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import json
import os
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from warptile.contracts import UnusableInput
from warptile.journal.codec import to_json
from warptile.journal.entries import KINDS, Entry
from warptile.journal.migrations import SCHEMA, migrated

_SUFFIX = ".jsonl"
EDITED = "changed since it was written; read as it stands"


@dataclass(frozen=True)
class JournalWarning:
    """A line that could not be read, or not as it was written. line counts from 1; torn: it is the unfinished last line
    of a killed run.

    end: offset in bytes of what follows the line.
    """

    file: Path
    line: int
    reason: str
    end: int
    torn: bool = False

    def text(self) -> str:
        """One line that names the file and the line."""
        return f"{self.file}, line {self.line}: {self.reason}"


def warning_lines(warnings: Iterable[JournalWarning]) -> list[str]:
    """One line a file: its first warning, and how many more of its lines have one."""
    first: dict[Path, JournalWarning] = {}
    more: Counter[Path] = Counter()
    for warning in warnings:
        if first.setdefault(warning.file, warning) is not warning:
            more[warning.file] += 1
    return [
        warning.text() + (f"; {more[file]} more of its lines are unreadable or were changed" if more[file] else "")
        for file, warning in first.items()
    ]


@dataclass(frozen=True)
class Reading:
    """Every readable entry, oldest first, and the lines passed over (they stay on disk untouched)."""

    entries: tuple[Entry, ...]
    warnings: tuple[JournalWarning, ...]


@dataclass(frozen=True)
class Line:
    """One entry, in this schema's form, and where it stands: the file, its line from 1, its bytes [offset, end).

    edited: its check does not fit what it says: someone changed it after it was written.
    """

    file: Path
    number: int
    offset: int
    end: int
    entry: Entry
    edited: bool = False


class Journal:
    """The journal in `folder`; the folder and the run's file are created at the first `append`.

    run: this run's name, also its file's: UTC time and eight random hexadecimal digits.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-{secrets.token_hex(4)}"
        self._descriptor: int | None = None
        self._written = 0

    @property
    def path(self) -> Path:
        """The file this run appends to."""
        return self.folder / (self.run + _SUFFIX)

    def append(self, entry: Entry) -> Entry:
        """Write one entry durably and return it as written, with `schema`, `time`, `run`, `seq` and `check` added.

        seq counts this run's entries from 1; check is a hash of the others, by which a later change shows. An entry of
        another run (a card's, in a fleet's file) keeps its time, and what it was called there as `origin`.
        Raises UnusableInput where the folder cannot be written or the disk is full; a half-written line is
        taken back first, so every line before it stands.
        """
        if entry.get("kind") not in KINDS:
            raise ValueError(f"a journal entry's kind is one of {', '.join(KINDS)}, not {entry.get('kind')!r}")
        time = datetime.now(UTC).isoformat(timespec="microseconds")
        given = to_json(entry)
        if "run" in given and given["run"] != self.run:
            given["origin"] = f"{given['run']}:{given['seq']}" if "seq" in given else str(given["run"])
        given |= {"schema": SCHEMA, "run": self.run, "seq": self._written + 1}
        given.pop("check", None)
        whole: Entry = {"schema": SCHEMA, "time": time, "run": self.run, "seq": self._written + 1, **given}
        whole["check"] = check_of(whole)
        data = (json.dumps(whole, allow_nan=False, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
        try:
            if self._descriptor is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            self._write(self._descriptor, data)
        except OSError as error:
            raise UnusableInput(f"journal {self.path}: cannot be written: {error.strerror or error}") from None
        self._written += 1
        return whole

    @staticmethod
    def _write(descriptor: int, data: bytes) -> None:
        before = os.fstat(descriptor).st_size
        try:
            if (written := os.write(descriptor, data)) != len(data):
                raise OSError(f"only {written} of {len(data)} bytes fitted")
            os.fsync(descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, before)
            raise

    def close(self) -> None:
        """Close the run's file; the next `append` opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def files(self) -> list[Path]:
        """Every run's file, oldest first."""
        return sorted(self.folder.glob("*" + _SUFFIX)) if self.folder.is_dir() else []

    def entries(self) -> Iterator[Entry]:
        """Every readable entry, oldest first. Raises UnusableInput as `read` does."""
        yield from self.read().entries

    def read(self) -> Reading:
        """Every readable entry and a warning for each line that is not one.

        Runs that overlap are merged by time; a run's own lines keep their order, whatever its clock did.
        Raises UnusableInput, naming file and line, for a line of a newer schema or a file that cannot be opened.
        """
        runs: list[list[Entry]] = []
        warnings: list[JournalWarning] = []
        for file in self.files():
            found = list(read_lines(file))
            warnings += warnings_of(found)
            runs.append([line.entry for line in found if isinstance(line, Line)])
        return Reading(tuple(heapq.merge(*runs, key=lambda entry: str(entry.get("time", "")))), tuple(warnings))


def check_of(entry: Entry) -> str:
    """Eight hexadecimal digits of the BLAKE2 hash of an entry's JSON text, `check` itself left out."""
    rest = {name: value for name, value in entry.items() if name != "check"}
    text = json.dumps(rest, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.blake2s(text, digest_size=4).hexdigest()


def warnings_of(lines: Iterable[Line | JournalWarning]) -> list[JournalWarning]:
    """The lines that could not be read, those that were edited, and those with the number of an earlier one."""
    found: list[JournalWarning] = []
    seen: set[Any] = set()
    for line in lines:
        if isinstance(line, JournalWarning):
            found.append(line)
        elif line.edited:
            found.append(JournalWarning(line.file, line.number, EDITED, line.end))
        elif (line.entry["run"], line.entry["seq"]) in seen:
            reason = f"a second entry with the number {line.entry['seq']}; read as it stands"
            found.append(JournalWarning(line.file, line.number, reason, line.end))
        if isinstance(line, Line):
            seen.add((line.entry["run"], line.entry["seq"]))
    return found


def read_lines(file: Path, offset: int = 0, number: int = 0) -> Iterator[Line | JournalWarning]:
    """The lines of one run's file from `offset` on, where `number` lines came before.

    Raises UnusableInput for a newer schema or a file that cannot be read.
    """
    try:
        with file.open("rb") as stream:
            stream.seek(offset)
            yield from parse_lines(file, stream, offset, number)
    except OSError as error:
        raise UnusableInput(f"journal {file}: cannot be read: {error.strerror or error}") from None


def parse_lines(
    file: Path, lines: Iterable[bytes], offset: int = 0, number: int = 0
) -> Iterator[Line | JournalWarning]:
    """What lines of bytes say that come from `file`, as `read_lines` does."""
    for here, raw in enumerate(lines, start=number + 1):
        yield _parse(file, here, offset, raw)
        offset += len(raw)


def _parse(file: Path, number: int, offset: int, raw: bytes) -> Line | JournalWarning:
    end = offset + len(raw)
    if not raw.endswith(b"\n"):
        return JournalWarning(file, number, "unfinished last line of a killed run; passed over", end, torn=True)
    try:
        value: Any = json.loads(raw)
    except (ValueError, RecursionError):
        return JournalWarning(file, number, "not JSON; passed over", end)
    schema = value.get("schema") if isinstance(value, dict) else None
    if type(schema) is not int or schema < 1 or not isinstance(value.get("kind"), str):
        return JournalWarning(file, number, "not a journal entry; passed over", end)
    if schema > SCHEMA:
        raise UnusableInput(f"journal {file}, line {number}: schema {schema} is newer than this warptile's {SCHEMA}")
    edited = "check" in value and value["check"] != check_of(value)
    entry = migrated(value, file.stem, number)
    if not isinstance(entry.get("run"), str):
        entry["run"] = file.stem
    if type(entry.get("seq")) is not int:
        entry["seq"] = number
    return Line(file, number, offset, end, entry, edited)
