"""One hypothesis, two arms: written before it is raced, answered after, and raced again where it says faster."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes_loop import IDENTITY, LIMITS, FakeKernel, FakeStand, FakeTile

from warptile.contracts import Problem, UnusableInput
from warptile.journal import Asked, Journal
from warptile.journal.history import History
from warptile.journal.record import Record
from warptile.studies.pair import Pair, PairResult, Recorded, measure_pair
from warptile.tuning.notes import Book

PROBLEM = Problem("Q4_1", 576, 576, 32)
SLOW, FAST, WRONG = (FakeTile(*each).text() for each in ((1, 1), (8, 4), (2, 2)))


def run(folder: Path, control: str, arm: str, because: str = "", expect: float | None = None) -> PairResult:
    stand = FakeStand(wrong=frozenset({WRONG}))
    journal = Journal(folder)
    asked = Asked("study", ("study", "--arms", control, arm), because)
    book = Book(Record(journal, IDENTITY, LIMITS, asked, journal.read().entries), {"fake.tile": FakeKernel()})
    return measure_pair(Pair(control, arm, PROBLEM, expect), stand, book, 10.0)


def test_a_gain_is_confirmed_and_every_entry_refers_to_its_hypothesis(tmp_path: Path) -> None:
    first = run(tmp_path, SLOW, FAST, because="wider rows")
    assert first.decision.outcome == "accept"
    again = run(tmp_path, SLOW, FAST, expect=3.0)
    history = History.of(Journal(tmp_path))
    one, two = history.hypotheses
    assert (one.because, one.basis, one.predicted.by) == ("wider rows", "person", "price")
    assert one.predicted.ratio == pytest.approx(8.0)  # FakeKernel prices the width alone
    assert (two.basis, two.predicted.by, two.predicted.ratio) == ("price", "person", 3.0)
    assert two.supersedes == one.ref
    assert [race.stage for race in history.races] == ["study", "confirm"] * 2
    assert {race.hypothesis for race in history.races[:2]} == {one.ref}
    assert history.decisions[0].races == tuple(race.ref for race in history.races[:2])
    assert history.decisions[1].supersedes == history.decisions[0].ref == first.ref
    assert again.hypothesis == two.ref
    assert history.races[0].state.why == "a software device has no clocks of its own"


def test_a_loss_is_raced_once_and_rejected(tmp_path: Path) -> None:
    result = run(tmp_path, FAST, SLOW)
    assert result.decision.outcome == "reject"
    assert len(result.races) == 1


def test_a_wrong_arm_is_rejected_by_its_proof_and_a_wrong_control_refused(tmp_path: Path) -> None:
    result = run(tmp_path, SLOW, WRONG)
    assert (result.decision.outcome, result.races) == ("reject", ())
    assert result.decision.reason.startswith("wrong: ")
    assert [v.verdict.right for v in History.of(Journal(tmp_path)).verdicts] == [True, False]
    with pytest.raises(UnusableInput, match=r"the control .* is out: wrong"):
        run(tmp_path, WRONG, SLOW)


def test_a_recorded_interval_is_met_again_or_not(tmp_path: Path) -> None:
    races = run(tmp_path, SLOW, FAST).races
    low, high = races[0].low, races[0].high
    assert Recorded(low, high).agreement(races) == "overlaps"
    floor = max(race.floor for race in races)
    assert Recorded(high * 1.5 * (1 + floor), high * 1.6).agreement(races) == "does not overlap"
    top = max(race.high for race in races)
    near = Recorded(top * (1 + floor / 4), top * (1 + floor / 2), floor)
    assert near.agreement(races) == "overlaps within the A/A floors"
