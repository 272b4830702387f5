"""Studies on a device: arms proved, raced together, and reported in the order measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from warptile import devices
from warptile.contracts import Arm, Identity, Limits, Problem, Race, UnusableInput, Verdict
from warptile.journal import Asked, Journal
from warptile.journal.history import History
from warptile.journal.record import Record
from warptile.kernels import for_runtime
from warptile.places import Places
from warptile.studies import Measured, load, measure
from warptile.studies.load import parse
from warptile.tuning.notes import Book
from warptile.tuning.stand import Proof
from warptile.tuning.worker_stand import WorkerStand

SMALL = """
question = "Does half the K-step pay here?"
hypothesis = "No."
device = "lavapipe"
control = "two"
expected = ["two", "one", "plain"]
[[problem]]
name = "p"
format = "Q4_K"
n = 96
k = 512
m = 32
[[arm]]
name = "two"
tile = "mul_mmq:32,32,16,32,32,4,2,2,2,1,8,2"
[[arm]]
name = "one"
expect = "loss"
tile = "mul_mmq:32,32,16,32,32,4,2,2,2,1,8,1"
[[arm]]
name = "plain"
tile = "mul_mmq:32,32,16,32,32,4,2,2,2,1,8,2,dot=plain"
[[arm]]
name = "two again"
tile = "mul_mmq:32,32,16,32,32,4,2,2,2,1,8,2"
"""


class FakeStand:
    """Seconds by a word in the tile; tiles that hold `wrong` fail their proof."""

    def __init__(self, seconds: Mapping[str, float], wrong: str = "none") -> None:
        self.seconds = seconds
        self.wrong = wrong
        self.proofs: list[str] = []
        self.races = 0

    def describe(self) -> tuple[Limits, Identity]:
        return devices.by_name("lavapipe"), Identity("fake", "1", "none", "vulkan")

    def prove(self, tile: str, problems: Sequence[Problem], seed: int, deadline: float) -> Proof:
        self.proofs.append(tile)
        right = self.wrong not in tile
        return Proof(Verdict(right, (), failed="" if right else "bound", binary=len(self.proofs)), "", 0.0)

    def _of(self, tile: str) -> float:
        return next((s for word, s in self.seconds.items() if word in tile), 0.01)

    def race_all(
        self,
        problem: Problem,
        incumbent: str,
        challengers: Sequence[str],
        proved: Mapping[str, int],
        seconds: float,
        rounds: int,
        seed: int,
        deadline: float,
    ) -> list[Race]:
        self.races += 1
        assert incumbent in proved
        found = []
        for tile in challengers:
            ratio = self._of(incumbent) / self._of(tile)
            a, b = Arm(incumbent, problem), Arm(tile, problem)
            found.append(Race(a, b, ratio, ratio * 0.9, ratio * 1.1, 0.95, 0.01, 0.01, 0.01 / ratio, 40, 1, 1, 0))
        return found


def test_arms_are_ordered_as_measured() -> None:
    stand = FakeStand({"dot=plain": 0.005, "bk_step=1": 0.02})
    found = measure(parse(SMALL, "small", "small"), stand, 10)
    assert found.order == ("plain", "two", "two again", "one")
    assert found.arms[0].ratio == pytest.approx(2.0)
    assert (found.arms[0].low, found.arms[0].high) == (pytest.approx(1.8), pytest.approx(2.2))
    assert {row.arm: row.outcome for row in found.rows} == {
        "two": "control", "one": "raced", "plain": "raced", "two again": "same tile",
    }  # fmt: skip
    assert len(stand.proofs) == 3, "equal tiles are proved once"
    assert stand.races == 1, "arms of a problem share one race"
    paper = {arm.arm: arm.ratio for arm in found.paper.arms}
    assert found.spearman is not None
    assert (found.spearman > 0) == (paper["one"] < paper["two"])  # type: ignore[operator]


def test_a_wrong_arm_is_reported_and_not_raced() -> None:
    found = measure(parse(SMALL, "small", "small"), FakeStand({}, wrong="dot=plain"), 10)
    row = next(row for row in found.rows if row.arm == "plain")
    assert (row.outcome, row.race) == ("wrong", None)
    assert "bound" in row.detail
    assert "plain" not in found.order


def test_what_a_study_believed_and_found_is_in_the_journal(tmp_path: Path) -> None:
    stand = FakeStand({"bk_step=1": 0.02}, wrong="dot=plain")
    limits, identity = stand.describe()
    journal = Journal(tmp_path)
    usable = {kernel.name: kernel for kernel in for_runtime("vulkan")}
    book = Book(Record(journal, identity, limits, Asked("study", ("study", "small"))), usable)
    measure(parse(SMALL, "small", "small"), stand, 10, book=book)
    history = History.of(journal)
    one, plain = history.hypotheses
    assert (one.names, one.basis, one.because, one.predicted.expect) == (("two", "one"), "study", "No.", "loss")
    assert one.predicted.ratio is not None
    (race,) = history.races
    assert (race.stage, race.hypothesis, race.race.ratio) == ("study", one.ref, 0.5)
    told = {decided.hypothesis: decided.decision for decided in history.decisions}
    assert told[one.ref].outcome == "reject"
    assert told[plain.ref].reason == "wrong: bound: "
    assert [verdict.verb for verdict in history.verdicts] == ["study"] * 3
    assert min(each.ref for each in history.hypotheses) < min(each.ref for each in history.verdicts), "believed first"


def test_a_wrong_control_ends_the_study() -> None:
    with pytest.raises(UnusableInput, match="control two on p is wrong"):
        measure(parse(SMALL, "small", "small"), FakeStand({}, wrong="bk_step=2,dot=int_dot"), 10)


def test_several_problems_are_averaged() -> None:
    stand = FakeStand({"bk_step=1": 0.02, "bk_step=4": 0.02})
    found = measure(load("mali-g610"), stand, 10)
    by_name = {arm.arm: arm for arm in found.arms}
    assert by_name["it6"].ratio == pytest.approx(1.0), "it6 differs on one problem, where the control is as slow"
    assert by_name["it5"].ratio == pytest.approx(2**0.5)
    assert by_name["it4"].ratio == pytest.approx(2.0)
    assert found.order[0] == "it4"


def test_a_study_on_a_real_device(software_device: str, places: Places) -> None:
    stand = WorkerStand(software_device, places)
    try:
        found: Measured = measure(parse(SMALL, "small", "small"), stand, 6)
    finally:
        stand.close()
    assert {row.outcome for row in found.rows} == {"control", "raced", "same tile"}
    assert all(row.race is None or row.race.rounds > 0 for row in found.rows)
    assert set(found.order) == {"two", "one", "plain", "two again"}
    assert found.paper.device == found.identity.device
