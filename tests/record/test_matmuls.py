"""A tune's journal read back must say what the tune itself said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes_loop import IDENTITY, WORKLOAD, FakeKernel, FakeStand, FakeTile, budget, places
from warptile.contracts import Decision
from warptile.journal import Journal
from warptile.journal.facts import Run
from warptile.journal.history import History
from warptile.journal.record import STUDY
from warptile.record import records_of
from warptile.tune import tune_on

BEST, STOCK = FakeTile(8, 4).text(), FakeTile(1, 1).text()


def tuned(folder: Path, stand: FakeStand | None = None) -> History:
    stand = stand or FakeStand()
    kernels = [FakeKernel()]
    tune_on(stand, WORKLOAD, (16, 128), budget(stand), places(folder), kernels=kernels)  # type: ignore[arg-type]
    return History.of(Journal(folder / "state" / "journal"))


def test_champion_stock_and_runner_up_of_every_matmul(tmp_path: Path) -> None:
    (device,) = records_of(tuned(tmp_path))
    assert device.identity == IDENTITY
    assert device.ceilings is not None
    assert [w.name for w in device.workloads] == [WORKLOAD.name]
    shapes = {(m.problem.n, m.problem.m) for m in device.matmuls}
    assert shapes == {(576, 16), (576, 128), (1536, 16), (1536, 128), (4096, 1)}
    for matmul in device.matmuls:
        assert (matmul.champion, matmul.accepted) == (BEST, True)
        assert matmul.last_race is not None
        assert matmul.stock_seconds == pytest.approx(matmul.problem.flops / 1e9)
        assert matmul.seconds == pytest.approx(matmul.problem.flops / 16e9, rel=0.05)
        assert matmul.tried[0].tile == BEST
        assert matmul.runner_up is not None
        assert matmul.runner_up.tile not in (BEST, STOCK)
        assert matmul.runner_up.seconds == pytest.approx(matmul.problem.flops / 13e9, rel=0.05)


def test_a_wrong_tile_is_on_record_without_a_time(tmp_path: Path) -> None:
    (device,) = records_of(tuned(tmp_path, FakeStand(wrong=frozenset({BEST}))))
    assert all(matmul.champion != BEST for matmul in device.matmuls)
    # A search may turn to another tile before it meets this one on every matmul.
    met = [found for matmul in device.matmuls if (found := matmul.of(BEST)) is not None]
    assert met
    assert {(found.right, found.seconds) for found in met} == {(False, None)}


def test_a_race_of_other_tiles_is_no_evidence_for_what_was_decided(tmp_path: Path) -> None:
    history = tuned(tmp_path)
    (device,) = records_of(history)
    before = device.matmuls[0]
    assert before.decided is not None
    later = replace(before.decided, incumbent="k:tile=7", challenger="k:tile=7", races=())
    later = replace(later, decision=Decision("undecided", "the budget ended before a race"))
    (device,) = records_of(replace(history, decisions=(*history.decisions, later)))
    found = device.matmuls[0]
    assert (found.champion, found.last_race, found.seconds) == ("k:tile=7", None, None)


def test_what_the_table_has_forgotten_is_said_so(tmp_path: Path) -> None:
    history = tuned(tmp_path)
    (device,) = records_of(history)
    assert not any(m.forgotten for m in device.matmuls)
    gone = tuple(replace(kept, time="2099-01-01", point=None) for kept in history.points)
    (after,) = records_of(replace(history, points=(*history.points, *gone)))
    assert all(m.forgotten for m in after.matmuls)


def test_a_study_of_two_other_tiles_does_not_change_what_serves(tmp_path: Path) -> None:
    history = tuned(tmp_path)
    (device,) = records_of(history)
    decided = device.matmuls[0].decided
    assert decided is not None
    study = replace(decided, incumbent=BEST, challenger=STOCK, layout=STUDY)
    (after,) = records_of(replace(history, decisions=(*history.decisions, study)))
    assert after.matmuls[0].champion == BEST
    assert after.matmuls[0].decided == decided


def test_the_confirmation_of_a_study_sets_no_scale(tmp_path: Path) -> None:
    history = tuned(tmp_path)
    problem = records_of(history)[0].matmuls[0].problem
    final = [t for t in history.timings if t.stage == "confirm" and t.problem == problem][:2]
    made = [replace(t, ref="study:1", time="2099-01-01", seconds=t.seconds * 9) for t in final]
    runs = {**history.runs, "study": Run("study", verb="study")}
    (device,) = records_of(replace(history, timings=(*history.timings, *made), runs=runs))
    tried = device.matmuls[0].of(final[0].tile)
    assert tried is not None
    assert tried.seconds == pytest.approx(final[0].seconds, rel=0.1)


def test_the_newest_of_ten_and_more_races_sets_the_scale(tmp_path: Path) -> None:
    history = tuned(tmp_path)
    problem = records_of(history)[0].matmuls[0].problem
    final = [t for t in history.timings if t.stage == "final" and t.problem == problem][:2]
    made = [
        replace(t, ref=f"run:{seq}", time=f"2099-01-01T00:00:{seq:02}", seconds=t.seconds * seq)
        for seq in (9, 10)
        for t in final
    ]
    (device,) = records_of(replace(history, timings=(*history.timings, *made)))
    tried = device.matmuls[0].of(final[0].tile)
    assert tried is not None
    assert tried.seconds == pytest.approx(final[0].seconds * 10)


def test_races_under_another_driver_are_counted_not_mixed(tmp_path: Path) -> None:
    tuned(tmp_path)
    newer = replace(IDENTITY, driver="2.0")
    (device,) = records_of(tuned(tmp_path, FakeStand(identity=newer)))
    assert device.identity == newer
    assert device.older == sum(len(m.races) for m in device.matmuls)
