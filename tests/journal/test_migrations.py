"""A journal written by any earlier version is read as if this one had written it, and its files stay as they are.

The samples are what the code of four earlier versions wrote: the first one, the one with hashes of sources, the one
with deadlines, and the last of schema 1, with a fleet's lines.
"""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from warptile.contracts import DeviceState, Identity
from warptile.journal import SCHEMA, Journal
from warptile.journal.history import History
from warptile.journal.index import Index
from warptile.journal.migrations import OLDER, migrated
from warptile.tables import rebuild_from
from warptile.tuning.recall import Recall

SAMPLES = sorted((Path(__file__).parent.parent / "data" / "journal").glob("schema1-*.jsonl"))
WHO = Identity("Sample card", "1.0", "glslang 13", "vulkan")


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_every_earlier_form_is_read_whole(tmp_path: Path, sample: Path) -> None:
    file = Path(shutil.copy(sample, tmp_path))
    before = file.read_bytes()
    reading = Journal(tmp_path).read()
    assert not reading.warnings
    assert [entry["seq"] for entry in reading.entries] == list(range(1, len(before.splitlines()) + 1))
    assert {entry["schema"] for entry in reading.entries} == {SCHEMA}
    history = History.read(reading.entries)
    assert history.unread == ()
    (race,) = history.races
    assert race.race.incumbent_samples == (0.0021, 0.0022, 0.0021)
    assert race.price is not None
    assert race.price_incumbent is None  # what was not written stays unknown
    assert race.state == DeviceState(why=OLDER)
    assert history.decisions[0].decision.outcome == "accept"
    assert history.decisions[0].hypothesis is None
    assert history.candidates[0].outcome == "timeout"
    assert history.verdicts[0].resources is None
    (run,) = history.runs.values()
    assert (run.name, run.verb, run.command, run.ended) == (file.stem, "tune", (), "end")
    assert [kept.point is None for kept in history.points] == [False, True]
    table = rebuild_from(Journal(tmp_path), tmp_path / "tables", WHO)
    assert table.rows() == []  # put, then forgotten
    assert file.read_bytes() == before


def test_what_an_earlier_version_measured_is_not_measured_again(tmp_path: Path) -> None:
    shutil.copy(SAMPLES[-1], tmp_path)
    recall = Recall(Journal(tmp_path).read().entries, WHO, proof=1)
    assert recall.proof("cc" * 32, [1536]) is not None


def test_a_fleets_lines_keep_the_name_of_their_own_run(tmp_path: Path) -> None:
    shutil.copy(SAMPLES[-1], tmp_path)
    (line,) = [e for e in Journal(tmp_path).entries() if "card" in e]
    assert line["run"] == SAMPLES[-1].stem
    assert line["origin"] == "20260101T000000.000000Z-0badcafe"
    journal = Journal(tmp_path / "fleet")
    written = journal.append(line)
    assert (written["run"], written["origin"]) == (journal.run, f"{SAMPLES[-1].stem}:{line['seq']}")


def test_a_line_of_this_schema_is_not_migrated() -> None:
    entry = {"schema": SCHEMA, "kind": "race", "run": "r", "seq": 3}
    assert migrated(entry, "other", 9) == entry


def test_an_index_of_an_earlier_version_is_made_anew(tmp_path: Path) -> None:
    shutil.copy(SAMPLES[0], tmp_path)
    path = tmp_path / "index.sqlite"
    with sqlite3.connect(path) as old:
        old.execute("CREATE TABLE lines (file TEXT, line INTEGER)")
        old.execute("INSERT INTO lines VALUES ('x.jsonl', 1)")
        old.execute("PRAGMA user_version = 1")
    old.close()
    with Index(path) as index:
        index.refresh(Journal(tmp_path))
        assert len(index.find()) == len(SAMPLES[0].read_text().splitlines())


def test_samples_are_of_the_schema_they_are_named_for() -> None:
    assert len(SAMPLES) == 4
    for sample in SAMPLES:
        assert {json.loads(line)["schema"] for line in sample.read_text().splitlines()} == {1}
