"""Another machine's journal joins this one: each entry once, nothing overwritten, what disagrees side by side."""

import gzip
import json
import shutil
import threading
from pathlib import Path

import pytest

from warptile.contracts import Identity, Problem, UnusableInput
from warptile.journal import Journal, entries
from warptile.journal.merge import merge
from warptile.tables import Key, Point, Validity

WHO = Identity("Sample card", "1.0", "glslang 13", "vulkan")
PROBLEM = Problem("Q4_1", 576, 1536, 128)
SAMPLES = sorted((Path(__file__).parent.parent / "data" / "journal").glob("*.jsonl"))


def written(folder: Path, *events: str) -> Journal:
    journal = Journal(folder)
    for event in events:
        journal.append(entries.run(event, WHO))
    return journal


def run_of(file: Path) -> str:
    return str(json.loads(file.read_text().splitlines()[0])["run"])


def put(tile: str) -> entries.Entry:
    point = Point(128, tile, "s", 1.0, 2.0, 2.0, 1.9, 2.1, 0.01, "accept", "r", Validity("1.0", "c", "a", 1))
    return entries.table(WHO, "put", Key.of(PROBLEM, "l"), point)


def test_every_entry_once_however_often_and_from_wherever(tmp_path: Path) -> None:
    ours, theirs = written(tmp_path / "a", "start", "end"), written(tmp_path / "b", "start", "end")
    for sample in SAMPLES:
        shutil.copy(sample, tmp_path / "b")
    count = len(theirs.read().entries)
    first = merge(ours, [tmp_path / "b"])
    assert (first.added, first.known, len(first.runs)) == (count, 0, 1 + len(SAMPLES))
    assert not first.conflicts
    again = merge(ours, [tmp_path / "b", *(tmp_path / "b").iterdir()])
    assert (again.added, again.known, again.runs) == (0, 2 * count, [])
    assert len(Journal(tmp_path / "a").read().entries) == count + 2
    for file in (tmp_path / "b").iterdir():
        assert (tmp_path / "a" / f"{run_of(file)}.jsonl").read_bytes() == file.read_bytes()


def test_runs_in_one_file_compressed_and_renamed_come_apart_again(tmp_path: Path) -> None:
    one, two = written(tmp_path / "b", "start", "end"), written(tmp_path / "b", "start", "interrupted")
    data = b"".join(each.read_bytes() for each in (one.path, SAMPLES[0], two.path, SAMPLES[-1]))
    (tmp_path / "all.jsonl.gz").write_bytes(gzip.compress(data))
    journal = Journal(tmp_path / "a")
    assert merge(journal, [tmp_path / "all.jsonl.gz"]).added == len(data.splitlines())
    assert {f.stem for f in journal.files()} == {one.run, two.run, run_of(SAMPLES[0]), run_of(SAMPLES[-1])}
    assert not journal.read().warnings


def test_a_run_that_went_on_elsewhere_is_completed_even_behind_a_torn_line(tmp_path: Path) -> None:
    theirs = written(tmp_path / "b", "start", "a", "b", "end")
    lines = theirs.path.read_bytes().splitlines(keepends=True)
    ours = Journal(tmp_path / "a")
    ours.folder.mkdir()
    here = ours.folder / theirs.path.name
    for torn, warned in ((lines[2][:30], 0), (b'{"of": "another hand', 1)):
        here.write_bytes(b"".join(lines[:2]) + torn)
        assert merge(ours, [theirs.path]).added == 2
        reading = ours.read()
        assert [entry["event"] for entry in reading.entries] == ["start", "a", "b", "end"]
        assert len(reading.warnings) == warned
        assert merge(ours, [theirs.path]).added == 0


def test_an_edited_line_is_a_conflict_shown_side_by_side_and_overwrites_nothing(tmp_path: Path) -> None:
    ours = written(tmp_path / "a", "start", "end")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    edited = tmp_path / "b" / ours.path.name
    edited.write_text(edited.read_text().replace('"end"', '"won"'))
    before = ours.path.read_bytes()
    merged = merge(ours, [tmp_path / "b"])
    (conflict,) = merged.conflicts
    assert (conflict.about, conflict.ours["event"], conflict.theirs["event"]) == (f"{ours.run}:2", "end", "won")
    assert ["changed since" in w.reason for w in merged.warnings] == [True]
    assert ours.path.read_bytes() == before


def test_two_winners_of_one_matmul_are_both_kept_and_shown(tmp_path: Path) -> None:
    ours, theirs = Journal(tmp_path / "a"), Journal(tmp_path / "b")
    ours.append(put("vulkan.a:n=1"))
    theirs.append(put("vulkan.a:n=2"))
    merged = merge(ours, [theirs.path])
    (both,) = merged.disagreements
    assert [each["point"]["tile"] for each in (both.ours, both.theirs)] == ["vulkan.a:n=1", "vulkan.a:n=2"]
    assert both.about.startswith("Q4_1 ")
    assert len(ours.read().entries) == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"schema": 99, "kind": "run", "run": "r"}\n', "line 1: schema 99 is newer"),
        (b'{"time": 1, "loss": 2}\n{"time": 2, "loss": 1}\n', "no line of it is an entry"),
        (b"\x1f\x8b\x08broken", "no line of it is an entry"),
        (b'{"schema": 1, "kind": "run", "event": "end", "run": "../../escape"}\n', "is no name of a run"),
    ],
)
def test_what_is_no_journal_of_this_schema_is_refused_whole(tmp_path: Path, content: bytes, said: str) -> None:
    ours = written(tmp_path / "a", "start")
    good = written(tmp_path / "b", "start")
    (tmp_path / "b" / "foreign.jsonl").write_bytes(content)
    with pytest.raises(UnusableInput, match=said) as caught:
        merge(ours, [good.path, tmp_path / "b" / "foreign.jsonl"])
    assert "\n" not in str(caught.value)
    assert [f.name for f in ours.files()] == [ours.path.name]


def test_a_line_that_cannot_be_read_is_passed_over_and_stays_where_it_is(tmp_path: Path) -> None:
    shutil.copy(SAMPLES[0], tmp_path / "x.jsonl")
    lines = (tmp_path / "x.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "x.jsonl").write_bytes(lines[0] + b"{torn\n" + b"".join(lines[2:]))
    journal = Journal(tmp_path / "a")
    merged = merge(journal, [tmp_path / "x.jsonl"])
    assert [w.line for w in merged.warnings] == [2]
    assert [e["seq"] for e in journal.read().entries] == [1, *range(3, len(lines) + 1)]
    assert merge(journal, [tmp_path / "x.jsonl"]).added == 0
    assert merge(journal, [SAMPLES[0]]).added == 1


def test_two_merges_at_once_bring_each_entry_once(tmp_path: Path) -> None:
    theirs = written(tmp_path / "b", *(f"e{i}" for i in range(50)))
    lines = theirs.path.read_bytes().splitlines(keepends=True)
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / theirs.path.name).write_bytes(b"".join(lines[:5]))
    threads = [threading.Thread(target=merge, args=(Journal(folder), [theirs.path])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (folder / theirs.path.name).read_bytes() == theirs.path.read_bytes()
