"""Tuning one pipeline changes that one; the others are raced as controls, and thresholds go where the tiles cross."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from fakes_loop import IDENTITY, LIMITS, FakeKernel, FakeStand, FakeTile, true_seconds

from warptile.cli.pipelines import chosen_sizes, heaviest
from warptile.contracts import Problem, UnusableInput, Workload, WorkloadRow
from warptile.journal import Journal
from warptile.tables import Table, Thresholds
from warptile.tuning.budget import Budget
from warptile.tuning.pipelines import PipelineTuner

BASE = Problem("Q4_1", 4096, 576, 1)
BEST, STOCK = FakeTile(8, 4).text(), FakeTile(1, 1).text()
NARROW, WIDE = FakeTile(2, 1), FakeTile(16, 2)


@dataclass
class CrossingStand(FakeStand):
    """The narrow tile is 4 times as fast up to 32 tokens and half as fast beyond; others as ever."""

    def seconds(self, tile: str, problem: Problem) -> float:
        if tile == NARROW.text():
            return true_seconds(WIDE.text(), problem) * (0.25 if problem.m <= 32 else 2.0)
        return super().seconds(tile, problem)


def tuner(folder: Path, stand: FakeStand, kernel: Any = None) -> PipelineTuner:
    table, journal = Table.load(folder, IDENTITY), Journal(folder / "journal")
    return PipelineTuner(stand, kernel or FakeKernel(), BASE, table, journal, 10.0)


def test_one_size_is_tuned_and_the_others_are_controls(tmp_path: Path) -> None:
    stand = FakeStand()
    own = tuner(tmp_path, stand)
    result = own.tune(["medium"], place_thresholds=False)
    (row,) = result.rows
    assert (row.size, row.before, row.decision.outcome) == ("medium", STOCK, "accept")
    assert row.after != STOCK
    assert row.problem.m == Thresholds().medium_m
    assert [(c.size, c.tile) for c in row.controls] == [("small", STOCK), ("large", STOCK)]
    assert all(c.low <= 1 <= c.high for c in row.controls)
    assert [p.size for p in result.pipelines.sizes] == ["medium"]
    assert result.pipelines.thresholds == Thresholds()
    again = tuner(tmp_path, stand)
    own._table.save()
    assert tuner(tmp_path, stand).current("medium") == row.after
    assert again.current("large") == STOCK


def test_a_later_run_starts_from_the_table_and_leaves_other_sizes(tmp_path: Path) -> None:
    first = tuner(tmp_path, FakeStand())
    before = first.tune(["small"], place_thresholds=False).pipelines
    first._table.save()
    second = tuner(tmp_path, FakeStand()).tune(["large"], place_thresholds=False).pipelines
    assert second.of_size("small") == before.of_size("small")
    assert [p.size for p in second.sizes] == ["small", "large"]


def test_a_tile_that_is_wrong_is_never_kept(tmp_path: Path) -> None:
    every = [FakeTile(w, d).text() for w in (1, 2, 4, 8, 16, 32) for d in (1, 2, 4, 8)]
    own = tuner(tmp_path, FakeStand(wrong=frozenset(every) - {STOCK}))
    (row,) = own.tune(["large"], place_thresholds=False).rows
    assert (row.after, row.decision.outcome) == (STOCK, "reject")
    with pytest.raises(UnusableInput, match="is not right"):
        tuner(tmp_path, FakeStand(wrong=frozenset(every))).tune(["large"])


def test_thresholds_go_where_the_larger_tile_starts_to_win(tmp_path: Path) -> None:
    stand = CrossingStand()
    own = tuner(tmp_path, stand)
    point = own.tune(["small"], place_thresholds=False).pipelines.sizes[0].point
    for size, tile in (("small", NARROW), ("medium", WIDE), ("large", FakeTile(8, 4))):
        kept = replace(own.pipelines.sizes[0], size=size, point=replace(point, tile=tile.text()))
        own.pipelines = own.pipelines.with_pipeline(kept)
    result = own.tune([])
    t = result.pipelines.thresholds
    assert (t.small_m, t.small_n) == (32, 32)
    assert t.medium_m == 32
    assert [(c.m, c.ratio > 1) for c in result.crossings if c.smaller == "small"] == [
        (8, True), (16, True), (32, True), (64, False),
    ]  # fmt: skip


def test_the_budget_bounds_proofs_and_leaves_what_was_not_decided(tmp_path: Path) -> None:
    now = [0.0]

    class SlowProofs(FakeStand):
        def prove(self, tile: str, problems: Any, seed: int, deadline: float) -> Any:
            now[0] += min(10.0, deadline)
            return super().prove(tile, problems, seed, deadline)

    table, journal = Table.load(tmp_path, IDENTITY), Journal(tmp_path / "journal")
    clock = Budget(30.0, lambda: now[0])
    own = PipelineTuner(SlowProofs(), FakeKernel(), BASE, table, journal, 10.0, clock=clock)
    result = own.tune()
    assert now[0] <= 30.0
    assert [(row.size, row.decision.outcome) for row in result.rows] == [
        (size, "undecided") for size in ("small", "medium", "large")
    ]
    assert result.pipelines.sizes == ()
    assert result.pipelines.thresholds == Thresholds()


def test_a_matmul_that_is_small_at_every_m_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="n = 32 is small"):
        PipelineTuner(
            FakeStand(), FakeKernel(), replace(BASE, n=32), Table.load(tmp_path, IDENTITY), Journal(tmp_path / "j"), 1.0
        )


def test_sizes_and_the_matmul_raced_on() -> None:
    assert chosen_sizes("large, small") == ("small", "large")
    with pytest.raises(UnusableInput, match="huge"):
        chosen_sizes("huge")
    rows = (
        WorkloadRow("Q4_1", 576, 576, "linear", ("a",), 1),
        WorkloadRow("Q4_1", 1536, 576, "linear", ("b",), 1),
        WorkloadRow("Q8_0", 49152, 576, "output", ("c",), 1),
    )
    assert [(p.format, p.n) for p in heaviest(Workload("w", "w", rows), LIMITS.activations)] == [("Q4_1", 1536)]
    with pytest.raises(UnusableInput, match="no matmul"):
        heaviest(Workload("w", "w", rows[2:]), "fp32")
