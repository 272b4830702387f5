"""Other machines' journal files taken into this one: every entry once, nothing overwritten, what disagrees shown.

An entry is known by its run and its number there. One that is here already, word for word, is passed over; one that is
not is appended to its run's file (or comes with the whole file where the run is new), as the other machine wrote it.
Two different entries of one number are a conflict: this journal's stays, and the other one is shown beside it. Two
winners of one matmul on one kind of device are shown beside each other too; both are kept, as evidence.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import os
import secrets
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warptile.contracts import UnusableInput
from warptile.journal.entries import Entry
from warptile.journal.migrations import migrated
from warptile.journal.store import Journal, JournalWarning, Line, check_of, parse_lines, read_lines, warnings_of

SUFFIXES = (".jsonl", ".jsonl.gz")
MOST_BYTES = 1 << 29


@dataclass(frozen=True)
class Theirs:
    """One line of another journal: its run, its number there, its entry in this schema's form, and its own text.

    numbered: whether the text says the number; older lines have that of their place.
    """

    run: str
    seq: int
    entry: Entry
    raw: bytes
    numbered: bool

    def at(self, place: int) -> bytes:
        """Its text for line `place` of a file: its own, or this schema's where the place would give another number."""
        if self.numbered or place == self.seq:
            return self.raw
        whole = {**self.entry, "check": check_of(self.entry)}
        return (json.dumps(whole, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class Conflict:
    """Two entries that cannot both be: what they are about, this journal's, and the other one's."""

    about: str
    ours: Entry
    theirs: Entry


@dataclass
class Merged:
    """What a merge did. added, known: entries taken and entries that were here; runs: names of runs that were new."""

    added: int = 0
    known: int = 0
    runs: list[str] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    disagreements: list[Conflict] = field(default_factory=list)
    warnings: list[JournalWarning] = field(default_factory=list)


def merge(journal: Journal, sources: Sequence[Path]) -> Merged:
    """Take the entries of files, or of every journal file in folders, into `journal`.

    Everything is read before anything is written. Raises UnusableInput where a source is no journal or of a newer
    schema, or the folder cannot be written; lines that cannot be read are passed over with a warning and stay in their
    file.
    """
    merged = Merged()
    wanted: dict[str, list[Theirs]] = defaultdict(list)
    for file in _files(sources):
        for each in _read(file, merged):
            wanted[each.run].append(each)
    before = journal.read().entries
    ours: dict[str, dict[int, Entry]] = defaultdict(dict)
    for entry in before:
        ours[entry["run"]].setdefault(entry["seq"], entry)
    new: list[Theirs] = []
    for run, lines in wanted.items():
        fresh = _missing(run, lines, ours.get(run, {}), merged)
        if fresh:
            if run not in ours:
                merged.runs.append(run)
            _append(journal.folder, run, fresh)
            merged.added += len(fresh)
            new += fresh
    merged.disagreements += _disagreements(before, [each.entry for each in new])
    return merged


def _files(sources: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for source in sources:
        if source.is_dir():
            inside = [f for f in sorted(source.iterdir()) if f.name.endswith(SUFFIXES)]
            inside += [f for f in sorted((source / "journal").glob("*.jsonl*")) if f.name.endswith(SUFFIXES)]
            if not inside:
                raise UnusableInput(f"journal {source}: no {' or '.join(SUFFIXES)} file in it")
            found += inside
        else:
            found.append(source)
    return found


def _read(file: Path, merged: Merged) -> list[Theirs]:
    try:
        data = _unpacked(file) if file.name.endswith(".gz") else file.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UnusableInput(f"journal {file}: cannot be read: {reason}") from None
    lines = list(parse_lines(file, data.splitlines(keepends=True)))
    good = [line for line in lines if isinstance(line, Line)]
    if not good and data.strip():
        raise UnusableInput(f"journal {file}: not a journal: no line of it is an entry")
    merged.warnings += warnings_of(lines)
    first: dict[str, int] = {}
    found = []
    run = ""
    for line in good:
        value: Mapping[str, Any] = json.loads(data[line.offset : line.end])
        # A fleet's file of schema 1 holds its cards' lines under the names of their own runs.
        run = run if "card" in value and run else str(value.get("run") or file.name.partition(".")[0])
        if not _plain(run):
            raise UnusableInput(f"journal {file}, line {line.number}: {run!r:.60} is no name of a run")
        numbered = type(value.get("seq")) is int
        seq = value["seq"] if numbered else line.number - first.setdefault(run, line.number) + 1
        entry = migrated(value, run, seq) | {"run": run, "seq": seq}
        found.append(Theirs(run, seq, entry, data[line.offset : line.end], numbered))
    return found


def _unpacked(file: Path) -> bytes:
    """A gzip file's content. Raises UnusableInput past `MOST_BYTES`, as small files of endless zeros would go."""
    with gzip.open(file) as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise UnusableInput(f"journal {file}: unpacks to more than {MOST_BYTES >> 20} MiB")
    return data


def _plain(run: str) -> bool:
    """Whether a run's name can be a file's."""
    return bool(run) and len(run) < 200 and all(c.isalnum() or c in "-_.+" for c in run) and not run.startswith(".")


def _missing(run: str, lines: Iterable[Theirs], here: Mapping[int, Entry], merged: Merged) -> list[Theirs]:
    """The lines that this journal has not, each number once; known ones are counted, conflicting ones kept aside."""
    taken: dict[int, Theirs] = {}
    for each in lines:
        known = here.get(each.seq) or (taken[each.seq].entry if each.seq in taken else None)
        if known is None:
            taken[each.seq] = each
        elif _same(known, each.entry):
            merged.known += 1
        else:
            merged.conflicts.append(Conflict(f"{run}:{each.seq}", known, each.entry))
    return list(taken.values())


def _same(one: Entry, other: Entry) -> bool:
    return _text(one) == _text(other)


def _text(entry: Entry) -> str:
    return json.dumps({k: v for k, v in entry.items() if k != "check"}, sort_keys=True)


def _append(folder: Path, run: str, lines: Sequence[Theirs]) -> None:
    """Put lines at the end of a run's file, or make it whole at once where there is none."""
    data = b"".join(each.at(place) for place, each in enumerate(lines, 1))
    target = folder / f"{run}.jsonl"
    temporary = folder / f".{run}.{secrets.token_hex(4)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            with temporary.open("xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            try:
                os.link(temporary, target)
                return
            except FileExistsError:
                pass  # another merge made it meanwhile
        _extend(target, lines)
    except OSError as error:
        raise UnusableInput(f"journal {target}: cannot be written: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _extend(target: Path, lines: Sequence[Theirs]) -> None:
    """Append under a lock what no other merge has brought meanwhile.

    An unfinished last line of a killed run stays, unless it is the beginning of the line that is now appended.
    """
    with target.open("r+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        held = stream.read()
        present = {line.entry["seq"] for line in read_lines(target) if isinstance(line, Line)}
        wanted = [each for each in lines if each.seq not in present]
        end, place = held.rfind(b"\n") + 1, held.count(b"\n") + 1
        data = b"".join(each.at(place + i) for i, each in enumerate(wanted))
        if not data.startswith(held[end:]):
            end = len(held)
            data = b"\n" + b"".join(each.at(place + 1 + i) for i, each in enumerate(wanted))
        try:
            stream.seek(end)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                stream.seek(end)
                stream.write(held[end:])
                stream.flush()
                os.ftruncate(stream.fileno(), len(held))
            raise


def _disagreements(before: Iterable[Entry], new: Iterable[Entry]) -> list[Conflict]:
    """Newest points of one matmul on one device, driver and compiler, ours and theirs, with other winners."""
    ours, theirs = _winners(before), _winners(new)
    found = []
    for subject, entry in theirs.items():
        other = ours.get(subject)
        if other is not None and other["point"].get("tile") != entry["point"].get("tile"):
            found.append(Conflict(subject, other, entry))
    return found


def _winners(entries: Iterable[Entry]) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for entry in sorted((e for e in entries if e["kind"] == "table"), key=lambda e: str(e.get("time", ""))):
        key, point, who = entry.get("key"), entry.get("point"), entry.get("identity")
        if isinstance(key, dict) and isinstance(who, dict):
            m = point.get("m") if isinstance(point, dict) else None
            about = [who.get(name) for name in ("device", "runtime", "driver", "compiler")]
            words = " ".join(f"{name}={key[name]}" for name in sorted(key) if name not in ("format", "layout"))
            subject = f"{key.get('format')} {words}"
            if isinstance(point, dict):
                found[f"{subject} m={m} on {', '.join(str(each) for each in about)}"] = entry
    return found
