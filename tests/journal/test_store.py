"""A run's record must survive kills, full disks and strange files."""

import json
import os
from pathlib import Path

import pytest

from warptile.contracts import Arm, Decision, Identity, Price, Problem, Race, UnusableInput, Verdict
from warptile.contracts.evidence import FirstWrong
from warptile.journal import Journal, entries, from_json, to_json
from warptile.journal.store import read_lines

IDENTITY = Identity(device="lavapipe", driver="22.3.6", compiler="glslang 13", runtime="vulkan")
PROBLEM = Problem("Q4_1", n=576, k=1536, m=128, count=30)


def a_race() -> Race:
    return Race(
        Arm("vulkan.a:n=1", PROBLEM),
        Arm("vulkan.b:n=2", PROBLEM),
        ratio=2.5,
        low=2.4,
        high=2.6,
        confidence=0.95,
        floor=0.02,
        incumbent_seconds=0.05,
        challenger_seconds=0.02,
        rounds=2,
        copies=3,
        rotated_bytes=100,
        cache_bytes=10,
        incumbent_samples=(0.05, 0.051),
        challenger_samples=(0.02, 0.021),
    )


def test_overlapping_runs_are_merged_by_time(tmp_path: Path) -> None:
    long, short = Journal(tmp_path), Journal(tmp_path)
    assert long.run < short.run
    long.append(entries.run("start", IDENTITY))
    short.append(entries.table(IDENTITY, "forget", {}))
    long.append(entries.decision(IDENTITY, PROBLEM, "vulkan.a:n=1", "vulkan.b:n=2", Decision("accept", "faster")))
    assert [e["kind"] for e in Journal(tmp_path).entries()] == ["run", "table", "decision"]


def test_a_clock_set_back_does_not_reorder_a_run(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for event, time in (("start", "2026-01-02"), ("end", "2026-01-01")):
        journal.append({**entries.run(event, IDENTITY), "time": time})
    assert [e["event"] for e in Journal(tmp_path).entries()] == ["start", "end"]


def test_a_race_comes_back_with_every_sample(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(entries.race(IDENTITY, "final", a_race(), ("aa", "bb")))
    (entry,) = journal.entries()
    assert from_json(Race, entry["race"]) == a_race()
    assert from_json(Identity, entry["identity"]) == IDENTITY


def test_a_verdict_with_infinite_error_is_strict_json(tmp_path: Path) -> None:
    wrong = Verdict(
        right=False,
        checks=("written", "bound"),
        failed="bound",
        first_wrong=FirstWrong(0, 1, float("nan"), 1.0, 1e-3),
        shapes=((1, 2, 3),),
        nmse=float("inf"),
    )
    journal = Journal(tmp_path)
    journal.append(entries.verdict(IDENTITY, "vulkan.a:n=1", PROBLEM, wrong, "ss", "aa", [576], 1.5))

    def refuse(word: str) -> float:
        raise AssertionError(f"{word} is not JSON")

    entry = json.loads(journal.path.read_text(), parse_constant=refuse)
    back = from_json(Verdict, entry["verdict"])
    assert back.nmse == float("inf")
    assert back.shapes == wrong.shapes
    assert back.first_wrong is not None
    assert back.first_wrong.got != back.first_wrong.got


@pytest.mark.parametrize("cut", [1, 20, -1])
def test_a_kill_while_writing_loses_only_the_line_in_flight(tmp_path: Path, cut: int) -> None:
    journal = Journal(tmp_path)
    for event in ("start", "end"):
        journal.append(entries.run(event, IDENTITY))
    data = journal.path.read_bytes()
    last = data.rfind(b"\n", 0, -1) + 1
    journal.path.write_bytes(data[: (last + cut) if cut > 0 else cut])
    reading = Journal(tmp_path).read()
    assert [e["event"] for e in reading.entries] == ["start"]
    (warning,) = reading.warnings
    assert warning.torn
    assert warning.line == 2
    assert str(journal.path) in warning.text()


@pytest.mark.parametrize("bad", [b"{nonsense\n", b"[1]\n", b"\xff\xfe\n", b'{"schema": "1", "kind": "run"}\n', b"\n"])
def test_a_corrupt_middle_line_is_reported_and_the_others_kept(tmp_path: Path, bad: bytes) -> None:
    journal = Journal(tmp_path)
    journal.append(entries.run("start", IDENTITY))
    journal.append(entries.run("end", IDENTITY))
    lines = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(lines[0] + bad + lines[1])
    reading = Journal(tmp_path).read()
    assert [e["event"] for e in reading.entries] == ["start", "end"]
    assert [w.line for w in reading.warnings] == [2]
    assert journal.path.read_bytes() == lines[0] + bad + lines[1]


def test_nested_brackets_do_not_overflow_the_reader(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(entries.run("start", IDENTITY))
    with journal.path.open("ab") as stream:
        stream.write(b"[" * 200_000 + b"\n")
    assert len(Journal(tmp_path).read().warnings) == 1


def test_a_newer_schema_is_refused_by_file_and_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(entries.run("start", IDENTITY))
    with journal.path.open("a") as stream:
        stream.write('{"schema": 99, "kind": "run"}\n')
    with pytest.raises(UnusableInput, match=r"line 2: schema 99 is newer") as caught:
        Journal(tmp_path).read()
    assert str(journal.path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableInput, match="cannot be written"):
        Journal(tmp_path / "file" / "journal").append(entries.run("start"))


def test_a_full_disk_takes_the_half_line_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path)
    journal.append(entries.run("start", IDENTITY))
    whole = journal.path.read_bytes()
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:10]))
    with pytest.raises(UnusableInput, match="only 10 of"):
        journal.append(entries.run("end", IDENTITY))
    assert journal.path.read_bytes() == whole


def test_lines_know_their_bytes(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(entries.run("start", IDENTITY))
    journal.append(entries.run("end", IDENTITY))
    first, second = read_lines(journal.path)
    assert (first.end, second.end) == (second.offset, journal.path.stat().st_size)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "value"),
    [(Problem, {"format": "Q4_1"}), (Problem, []), (Decision, {"outcome": 3, "reason": ""}), (Problem, {"n": True})],
)
def test_a_wrong_shape_is_a_value_error(kind: type, value: object) -> None:
    with pytest.raises(ValueError, match=r"expected|missing"):
        from_json(kind, value)


def test_price_round_trip() -> None:
    price = Price(32, 60, 0, 128, "registers", 0, 12.5, 40, 0.9, float("inf"), True, ("why",))
    assert from_json(Price, to_json(price)) == price
