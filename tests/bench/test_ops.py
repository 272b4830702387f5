"""The op bench on a stand without a device: what it races, what it makes of it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.fakes_loop import IDENTITY, WORKLOAD, FakeKernel, FakeStand, FakeTile, budget
from warptile.bench import OpsReport, bench_ops
from warptile.contracts import Ceilings, Problem
from warptile.journal import Journal
from warptile.roofline import floor_seconds
from warptile.tables import Table

CEILINGS = Ceilings(read_bytes_per_s=1e10, flops_per_s=1e11, empty_launch_s=1e-6)


class Stand(FakeStand):
    def ceilings(self) -> Ceilings:
        return CEILINGS


def run(folder: Path, stand: Stand, kernel: FakeKernel | None = None) -> OpsReport:
    table = Table.load(folder, IDENTITY)
    journal = Journal(folder / "journal")
    kernels = [kernel or FakeKernel()]
    return bench_ops(stand, WORKLOAD, (128,), kernels, table, journal, budget(stand))  # type: ignore[arg-type,list-item]


def test_every_matmul_is_raced_against_stock_and_written_down(tmp_path: Path) -> None:
    report = run(tmp_path, Stand())
    assert [row.problem.text() for row in report.rows] == [
        "Q4_1 n=576 k=576 m=128",
        "Q4_1 n=1536 k=576 m=128",
        "Q8_0 n=4096 k=576 m=1",
    ]
    for row in report.rows:
        assert row.status == "untuned"
        assert row.stock == FakeTile(1, 1).text()
        assert row.gflops == pytest.approx(row.problem.flops / row.seconds / 1e9)
        assert row.ceiling_share == pytest.approx(floor_seconds(row.problem, CEILINGS) / row.seconds)
    middle, low, high = report.geomean or (0, 0, 0)
    assert low < middle < high
    assert middle == pytest.approx(math.prod(row.race.ratio for row in report.rows) ** (1 / 3))
    assert [e["stage"] for e in Journal(tmp_path / "journal").entries()] == ["bench"] * 3


def test_a_tile_that_fails_its_proof_is_left_out_with_the_reason(tmp_path: Path) -> None:
    served = run(tmp_path, Stand()).rows[0].tile
    report = run(tmp_path, Stand(wrong=frozenset([served])))
    assert report.rows == ()
    assert report.geomean is None
    assert all("failed its proof: bound" in reason for _, reason in report.left_out)


def test_the_shortest_time_is_the_slower_of_arithmetic_and_memory() -> None:
    long = Problem("Q4_1", 4096, 4096, 4096)
    assert floor_seconds(long, CEILINGS) == long.flops / 1e11
    one = Problem("Q4_1", 4096, 4096, 1)
    assert floor_seconds(one, CEILINGS) == (4096 * 4096 // 32 * 20 + 4 * (4096 + 4096)) / 1e10
