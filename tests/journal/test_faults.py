"""Full disks and other processes: every line that was written stands, and what failed is one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from warptile.cli import run
from warptile.contracts import UnusableInput
from warptile.journal import Journal, entries
from warptile.journal.index import Index
from warptile.journal.merge import merge

# The kernel cuts what goes past the limit short and then refuses it, as a full disk does.
FULL = """
import resource, signal, sys
from pathlib import Path
from warptile.contracts import UnusableInput
from warptile.journal import Journal, entries
from warptile.journal.merge import merge
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
journal = Journal(Path(sys.argv[1]))
written = 0
try:
    while True:
        journal.append(entries.run("start", None, source="x" * 200))
        written += 1
except UnusableInput as error:
    print(written, error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(journal.append(entries.run("end"))["seq"])
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    merge(Journal(Path(sys.argv[2])), [journal.path])
except UnusableInput as error:
    print(error)
"""

ONE = """
import sys
from pathlib import Path
from warptile.journal import Journal, entries
from warptile.journal.index import Index
folder = Path(sys.argv[1])
journal = Journal(folder)
for number in range(25):
    journal.append(entries.run("start", None, source=str(number)))
    with Index(folder / "index.sqlite") as index:
        index.refresh(journal)
"""


def test_a_disk_that_fills_up_loses_the_line_in_flight_and_nothing_else(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "a"), str(tmp_path / "b")],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout.splitlines()  # fmt: skip
    written, _, error = said[0].partition(" ")
    assert "cannot be written" in error
    reading = Journal(tmp_path / "a").read()
    assert not reading.warnings
    assert [entry["event"] for entry in reading.entries] == ["start"] * int(written) + ["end"]
    assert said[1] == str(int(written) + 1)  # with room again, the run goes on behind its last whole line
    assert "cannot be written" in said[2]
    assert list((tmp_path / "b").iterdir()) == []
    assert merge(Journal(tmp_path / "b"), [tmp_path / "a"]).added == int(written) + 1


def test_no_room_for_a_handover_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sample = Path(__file__).parent.parent / "data" / "journal" / "schema1-4.jsonl"
    assert run(("journal", "merge", str(sample), "--state", str(tmp_path))) == 0
    capfd.readouterr()
    assert run(("journal", "handover", "--out", "/dev/full", "--levers", "0", "--state", str(tmp_path))) == 2
    out, err = capfd.readouterr()
    assert (out, err) == ("", "warptile: /dev/full: cannot be written: No space left on device\n")


def test_a_full_device_under_a_runs_own_file(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.path.symlink_to("/dev/full")
    with pytest.raises(UnusableInput, match="No space left on device"):
        journal.append(entries.run("start"))


def test_processes_that_write_and_index_at_once_lose_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", ONE, str(tmp_path)]
    running = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [process.communicate()[1] for process in running]
    assert errors == ["", ""]
    reading = Journal(tmp_path).read()
    assert not reading.warnings
    assert len(reading.entries) == 2 * 25
    with Index(tmp_path / "index.sqlite") as index:
        index.refresh(Journal(tmp_path))
        assert len(index.find(limit=100)) == 2 * 25


def test_an_entry_with_fields_of_another_hand_is_counted_and_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sample = Path(__file__).parent.parent / "data" / "journal" / "schema1-4.jsonl"
    folder = tmp_path / "journal"
    folder.mkdir()
    lines = [json.loads(line) for line in sample.read_text().splitlines()]
    for line in lines:
        if line["kind"] == "race" and line["stage"] == "final":
            line["race"]["ratio"] = "about one"
        if line["kind"] == "verdict":
            line["verdict"] = ["right"]
    (folder / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for verb in ("list", "handover"):
        assert run(("journal", verb, "--state", str(tmp_path))) == 0
    out, err = capfd.readouterr()
    assert "# Handover" in out
    assert err == "2 entries have fields that no version writes so and are left out: r:4\n"


@pytest.mark.parametrize(("name", "value"), [("incumbent_seconds", 0), ("ratio", 0), ("low", -1), ("ratio", "NaN")])
def test_numbers_that_no_race_has_are_named_and_left_out_everywhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, value: float | str
) -> None:
    sample = Path(__file__).parent.parent / "data" / "journal" / "schema1-4.jsonl"
    folder = tmp_path / "journal"
    folder.mkdir()
    lines = [json.loads(line) for line in sample.read_text().splitlines()]
    for line in lines:
        if line["kind"] == "race" and line["stage"] == "final":
            line["race"][name] = value
        elif line["kind"] == "race":
            line["problem"]["n"] = -4
    (folder / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    state = ("--state", str(tmp_path))
    for verb, code in ((("journal", "handover"), 0), (("explain", "Q4_K n=256 k=256"), 2), (("report",), 2)):
        assert run((*verb, *state)) == code
        assert "2 entries have fields that no version writes so" in capfd.readouterr().err
