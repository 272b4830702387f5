"""A tune's journal read back must say what the tune itself said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes_loop import IDENTITY, WORKLOAD, FakeKernel, FakeStand, FakeTile, budget, places
from warptile.journal import Journal
from warptile.journal.history import History
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
    for matmul in device.matmuls:
        found = matmul.of(BEST)
        assert found is not None
        assert (found.right, found.seconds) == (False, None)
        assert matmul.champion != BEST


def test_races_under_another_driver_are_counted_not_mixed(tmp_path: Path) -> None:
    tuned(tmp_path)
    newer = replace(IDENTITY, driver="2.0")
    (device,) = records_of(tuned(tmp_path, FakeStand(identity=newer)))
    assert device.identity == newer
    assert device.older == sum(len(m.races) for m in device.matmuls)
