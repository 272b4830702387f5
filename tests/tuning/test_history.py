"""What a tune learns from a journal: this device's timings, doubted where they were made otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fakes_loop import IDENTITY, LIMITS, WORKLOAD, FakeKernel, FakeStand, FakeTile, budget, places
from warptile.contracts import Identity, Problem
from warptile.journal import Journal, entries
from warptile.search import Observation
from warptile.tables import Key
from warptile.tune import tune_on
from warptile.tuning.history import History, past_of

P = Problem("Q4_1", 576, 576, 128)
KERNEL = FakeKernel()


def arm(tile: FakeTile, seconds: float | None, source: str = "now") -> dict[str, Any]:
    return {"tile": tile.text(), "source": source, "seconds": seconds, "samples": 3, "predicted": None}


def read(folder: Path, identity: Identity = IDENTITY) -> Mapping[str, Observation]:
    def parse(text: str) -> tuple[FakeKernel, FakeTile]:
        return KERNEL, FakeTile.parse(text)

    found = past_of(Journal(folder).read().entries, identity, LIMITS, parse, lambda tile, problem: "now")  # type: ignore[arg-type]
    return {o.point.tile.text(): o for o in found}


def test_timings_of_this_device_are_learned_from_and_doubted_where_made_otherwise(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    two, four, eight = FakeTile(2, 1), FakeTile(4, 1), FakeTile(8, 1)
    journal.append(entries.screening(IDENTITY, P, [arm(two, 1.0), arm(four, 0.5, "then"), arm(eight, None)]))
    found = read(tmp_path)
    assert {t: o.seconds for t, o in found.items()} == {two.text(): 1.0, four.text(): 0.5}
    assert found[two.text()].doubt == 0
    assert found[four.text()].doubt == pytest.approx(0.3)
    newer = read(tmp_path, dataclasses.replace(IDENTITY, driver="2"))
    assert newer[two.text()].doubt == pytest.approx(0.15)
    assert read(tmp_path, dataclasses.replace(IDENTITY, device="Fake Two")) == {}


def test_forgotten_timings_and_edited_lines_are_passed_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(entries.screening(IDENTITY, P, [arm(FakeTile(2, 1), 1.0)]))
    journal.append(entries.table(IDENTITY, "forget", Key.of(P, "layout")))
    endless: Any = "Infinity"
    edited = [arm(FakeTile(4, 1), 2.0), arm(FakeTile(1024, 1), 1.0), arm(FakeTile(8, 1), endless)]
    journal.append(entries.screening(IDENTITY, P, edited))
    journal.append({**entries.screening(IDENTITY, P, []), "arms": 3})
    assert set(read(tmp_path)) == {FakeTile(4, 1).text()}


def test_the_nearest_problems_are_kept_where_there_are_too_many() -> None:
    tiles = [FakeTile(width, depth) for width in range(1, 31) for depth in range(1, 15)]

    def seen(m: int) -> list[Observation]:
        return [Observation(_point(tile, P.at(m)), 1.0, "earlier") for tile in tiles]

    correction = History(seen(1) + seen(128), LIMITS).correction(P, [])
    assert len(correction) == 600
    assert sum(o.point.problem.m == 128 for o in correction.observations) == 420


def _point(tile: FakeTile, problem: Problem) -> Any:
    from warptile.search import Point

    return Point(KERNEL.name, tile, problem, KERNEL.price(tile, problem, LIMITS))


@pytest.mark.parametrize("history", [True, False])
def test_a_tune_on_another_m_learns_only_where_it_may(tmp_path: Path, history: bool) -> None:
    """Tuned at m = 64 before, where width 8, depth 4 wins against its price: at 128 its first batch holds that tile."""
    for ms in ((64,), (128,)):
        stand = FakeStand()
        tune_on(
            stand, WORKLOAD, ms, budget(stand), places(tmp_path), kernels=[KERNEL], history=history  # type: ignore[list-item]
        )  # fmt: skip
    screenings = [
        e for e in Journal(tmp_path / "state" / "journal").entries()
        if e["kind"] == "race" and e["stage"] == "screen" and e["problem"]["m"] == 128
    ]  # fmt: skip
    first = {a["tile"] for a in screenings[0]["arms"]}
    assert (FakeTile(8, 4).text() in first) == history
