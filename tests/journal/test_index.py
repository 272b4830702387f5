"""The index answers from SQLite, but holds nothing the lines do not."""

from pathlib import Path

import pytest

from warptile.contracts import Identity, Problem, UnusableInput
from warptile.journal import Journal, entries
from warptile.journal.index import Index, read_hit

IDENTITY = Identity(device="lavapipe", driver="22.3.6", compiler="glslang 13", runtime="vulkan")
PROBLEM = Problem("Q4_1", n=576, k=1536, m=128)


def journal_of(folder: Path, tiles: list[str]) -> Journal:
    journal = Journal(folder)
    for tile in tiles:
        journal.append(entries.candidate(IDENTITY, tile, PROBLEM, "timeout", "too slow"))
    return journal


def test_find_and_read_back(tmp_path: Path) -> None:
    journal = journal_of(tmp_path, ["vulkan.a:n=1", "vulkan.a:n=2"])
    with Index(":memory:") as index:
        index.refresh(journal)
        (hit,) = index.find(tile="vulkan.a:n=2")
        assert (hit.format, hit.n, hit.k, hit.m, hit.outcome, hit.line) == ("Q4_1", 576, 1536, 128, "timeout", 2)
        assert read_hit(tmp_path, hit)["tile"] == "vulkan.a:n=2"
        assert index.find(kind="race") == []
        with pytest.raises(UnusableInput, match="no column"):
            index.find(colour="red")


def test_refresh_takes_only_what_is_new_and_waits_for_torn_lines(tmp_path: Path) -> None:
    journal = journal_of(tmp_path / "j", ["vulkan.a:n=1"])
    with Index(tmp_path / "index.sqlite") as index:
        index.refresh(journal)
        with journal.path.open("ab") as stream:
            stream.write(b'{"schema": 1, "kind": "run"')
        index.refresh(journal)
        assert len(index.find()) == 1
        with journal.path.open("ab") as stream:
            stream.write(b', "event": "end"}\n')
        index.refresh(journal)
        assert [h.kind for h in index.find(kind="run")] == ["run"]
        before = index.find()
        index.rebuild(journal)
        assert index.find() == before


def test_a_damaged_index_is_made_anew(tmp_path: Path) -> None:
    journal = journal_of(tmp_path / "j", ["vulkan.a:n=1"])
    path = tmp_path / "index.sqlite"
    path.write_bytes(b"not a database" * 100)
    with Index(path) as index:
        index.refresh(journal)
        assert len(index.find()) == 1


def test_a_removed_run_leaves_the_index(tmp_path: Path) -> None:
    journal = journal_of(tmp_path / "j", ["vulkan.a:n=1"])
    with Index(tmp_path / "index.sqlite") as index:
        index.refresh(journal)
        journal.path.unlink()
        index.refresh(journal)
        assert index.find() == []


def test_an_index_nowhere_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="journal index"):
        Index(tmp_path / "missing" / "index.sqlite")
