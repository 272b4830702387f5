"""A table must serve only what was measured here, and never lose or overwrite what it cannot read."""

import dataclasses
import json
import os
from pathlib import Path

import pytest

from warptile.contracts import Identity, Problem, UnusableInput
from warptile.journal import Journal, entries
from warptile.tables import Key, Point, Table, Validity, rebuild_from, table_path

HERE = Identity(device="NVIDIA H200", driver="580", compiler="glslang 13", runtime="vulkan")
P = Problem("Q4_1", n=576, k=1536, m=128, count=30)
LAYOUT = "q4_1.rows"
VALID = Validity(HERE.driver, HERE.compiler, "aa", 1)


def point(m: int, tile: str = "vulkan.a:n=1", validity: Validity = VALID) -> Point:
    return Point(m, tile, "vulkan.s:n=9", 1e-3, 2e-3, 2.0, 1.9, 2.1, 0.02, "accept", "beyond the floor", validity)


def table(folder: Path, *points: Point, identity: Identity = HERE) -> Table:
    made = Table.load(folder, identity)
    for one in points:
        made.put(P.at(one.m), LAYOUT, one)
    return made


def status(made: Table, m: int, tile: str | None = None) -> tuple[str, str]:
    served = made.lookup(P.at(m), LAYOUT, proof=1)
    assert served is not None
    return served.tile, served.status


def test_saved_and_loaded_again(tmp_path: Path) -> None:
    saved = table(tmp_path, point(128), point(1, "vulkan.b:n=2")).save()
    again = Table.load(tmp_path, HERE)
    assert status(again, 128) == ("vulkan.a:n=1", "tuned")
    assert status(again, 1) == ("vulkan.b:n=2", "tuned")
    assert again.point(P, LAYOUT) == point(128)
    assert list(tmp_path.iterdir()) == [saved]


def test_a_person_reads_intervals_with_measured_ends(tmp_path: Path) -> None:
    made = table(tmp_path, point(1, "vulkan.b:n=2"), point(512), point(128))
    rows = json.loads(made.save().read_text())["rows"]
    assert [(r["m_low"], r["m_high"], r["tile"]) for r in rows] == [
        (1, 1, "vulkan.b:n=2"),
        (128, 512, "vulkan.a:n=1"),
    ]


def test_between_two_equal_winners_is_tuned_and_elsewhere_is_not(tmp_path: Path) -> None:
    made = table(tmp_path, point(1, "vulkan.b:n=2"), point(128), point(512))
    assert status(made, 300) == ("vulkan.a:n=1", "tuned")
    assert status(made, 4) == ("vulkan.b:n=2", "untuned")
    assert status(made, 100) == ("vulkan.a:n=1", "untuned")
    assert status(made, 2048) == ("vulkan.a:n=1", "untuned")


def test_a_winner_far_from_the_m_asked_for_says_nothing(tmp_path: Path) -> None:
    made = table(tmp_path, point(1, "vulkan.b:n=2"), point(128))
    for far in (5, 8, 31, 513, 4096):
        assert made.lookup(P.at(far), LAYOUT, proof=1) is None


def test_a_stock_that_nothing_was_raced_against_serves_no_one(tmp_path: Path) -> None:
    """A tune that ends before its races writes down the stock; served, it would be slower than the price's pick."""
    unraced = dataclasses.replace(point(128), outcome="undecided", rounds=0)
    made = table(tmp_path, unraced)
    assert made.lookup(P, LAYOUT, proof=1) is None
    assert made.point(P, LAYOUT) == unraced
    made.put(P.at(64), LAYOUT, point(64, "vulkan.b:n=2"))
    assert status(made, 128) == ("vulkan.b:n=2", "untuned")
    made.put(P, LAYOUT, dataclasses.replace(unraced, rounds=12))
    assert status(made, 128) == ("vulkan.a:n=1", "tuned")


def test_other_shapes_formats_layouts_dtypes_are_not_served(tmp_path: Path) -> None:
    made = table(tmp_path, point(128))
    assert made.lookup(dataclasses.replace(P, n=192), LAYOUT, 1) is None
    assert made.lookup(dataclasses.replace(P, format="Q4_0"), LAYOUT, 1) is None
    assert made.lookup(dataclasses.replace(P, x_dtype="fp16"), LAYOUT, 1) is None
    assert made.lookup(P, "other", 1) is None


@pytest.mark.parametrize(
    ("validity", "why"),
    [
        (dataclasses.replace(VALID, driver="570"), "driver was 570"),
        (dataclasses.replace(VALID, compiler="old"), "compiler was old"),
        (dataclasses.replace(VALID, proof=0), "proof version was 0"),
    ],
)
def test_another_driver_compiler_or_proof_is_stale(tmp_path: Path, validity: Validity, why: str) -> None:
    served = table(tmp_path, point(128, validity=validity)).lookup(P, LAYOUT, 1)
    assert served is not None
    assert (served.status, served.why) == ("stale", why)


def test_a_changed_artefact_is_stale(tmp_path: Path) -> None:
    made = table(tmp_path, point(128))
    assert made.lookup(P, LAYOUT, 1, artefact=lambda tile: "aa").status == "tuned"  # type: ignore[union-attr]
    assert made.lookup(P, LAYOUT, 1, artefact=lambda tile: "bb").status == "stale"  # type: ignore[union-attr]


def test_a_sibling_card_has_its_own_table(tmp_path: Path) -> None:
    table(tmp_path, point(128)).save()
    sibling = dataclasses.replace(HERE, device="NVIDIA H20")
    assert Table.load(tmp_path, sibling).rows() == []
    table_path(tmp_path, HERE).rename(table_path(tmp_path, sibling))
    with pytest.raises(UnusableInput, match="measured on 'NVIDIA H200'"):
        Table.load(tmp_path, sibling)


def _corruptions() -> dict[str, str]:
    good = {"schema": 1, "device": HERE.device, "runtime": "vulkan", "rows": [{"format": "Q4_1"}]}
    return {
        "cut": '{"schema": 1',
        "empty": "",
        "list": "[]",
        "rows": json.dumps(good),
        "schema": '{"schema": "x"}',
        "deep": "[" * 100_000,
    }


@pytest.mark.parametrize("change", [{"seconds": -1.0}, {"stock_seconds": float("inf")}, {"ratio": float("nan")}])
def test_a_time_that_none_can_be_is_corrupt(tmp_path: Path, change: dict[str, float]) -> None:
    table(tmp_path, dataclasses.replace(point(128), **change)).save()
    with pytest.raises(UnusableInput, match="corrupt"):
        Table.load(tmp_path, HERE)


@pytest.mark.parametrize("name", list(_corruptions()))
def test_a_corrupt_file_is_one_line_and_is_left_alone(tmp_path: Path, name: str) -> None:
    path, text = table_path(tmp_path, HERE), _corruptions()[name]
    loaded_before = table(tmp_path, point(128))
    path.write_text(text)
    with pytest.raises(UnusableInput, match="corrupt") as caught:
        Table.load(tmp_path, HERE)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(UnusableInput, match="corrupt"):
        loaded_before.save()
    assert path.read_text() == text


def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    path = table_path(tmp_path, HERE)
    path.write_text('{"schema": 2}')
    with pytest.raises(UnusableInput, match=r"schema 2 is newer"):
        Table.load(tmp_path, HERE)
    assert path.read_text() == '{"schema": 2}'


def test_two_writers_keep_each_others_points(tmp_path: Path) -> None:
    one, two = table(tmp_path, point(128)), table(tmp_path, point(1))
    one.save()
    two.save()
    assert [r.m_low for r in Table.load(tmp_path, HERE).rows()] == [1]
    assert status(Table.load(tmp_path, HERE), 128) == ("vulkan.a:n=1", "tuned")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table(tmp_path, point(128)).save()
    before = path.read_bytes()
    changed = Table.load(tmp_path, HERE)
    changed.put(P.at(1), LAYOUT, point(1))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UnusableInput, match="No space left"):
        changed.save()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_rebuilt_from_the_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    key = Key.of(P, LAYOUT)
    other = Key.of(dataclasses.replace(P, n=192), LAYOUT)
    sibling = dataclasses.replace(HERE, device="NVIDIA H20")
    for identity, action, which, value in [
        (HERE, "put", key, point(128, "vulkan.old:n=1")),
        (HERE, "put", key, point(128)),
        (HERE, "put", other, point(128)),
        (HERE, "forget", other, None),
        (sibling, "put", key, point(128, "vulkan.sibling:n=1")),
    ]:
        journal.append(entries.table(identity, action, which, value))
    made = table(tmp_path, point(128))
    made.save()
    rebuilt = rebuild_from(journal, tmp_path, HERE)
    assert rebuilt.to_json() == made.to_json()


def test_forget(tmp_path: Path) -> None:
    made = table(tmp_path, point(128))
    made.save()
    again = Table.load(tmp_path, HERE)
    assert again.forget(Key.of(P, LAYOUT))
    assert not again.forget(Key.of(P, LAYOUT))
    again.save()
    assert Table.load(tmp_path, HERE).rows() == []


def test_a_point_for_another_m_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="m = 128"):
        Table.load(tmp_path, HERE).put(P.at(1), LAYOUT, point(128))
