"""The parts of the loop: time accounting, order of candidates, what the journal recalls."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.fakes_loop import IDENTITY, LIMITS, FakeKernel, FakeTile
from warptile.contracts import Arm, Problem, Verdict
from warptile.journal import Journal, entries
from warptile.race import Screened, Screening
from warptile.search import Correction
from warptile.tables import Table
from warptile.tuning import scale
from warptile.tuning.budget import Budget
from warptile.tuning.jobs import joined
from warptile.tuning.notes import Notes
from warptile.tuning.order import group_problems, next_offers
from warptile.tuning.recall import Recall
from warptile.tuning.stand import Proof

P = Problem("Q4_1", 576, 576, 128)
WIDER = Problem("Q4_1", 1536, 576, 128)


def test_the_budget_knows_what_is_left_and_what_steps_take() -> None:
    now = [100.0]
    budget = Budget(60, lambda: now[0])
    assert budget.expect("prove", 7.0) == 7.0
    for seconds in (1.0, 9.0, 2.0):
        with budget.step("prove"):
            now[0] += seconds
    assert (budget.spent(), budget.left(), budget.expect("prove", 7.0)) == (12.0, 48.0, 2.0)
    now[0] += 1000
    assert budget.left() == 0.0


def test_a_step_that_raises_is_timed_too() -> None:
    now = [0.0]
    budget = Budget(60, lambda: now[0])

    def fails() -> None:
        with budget.step("prove"):
            now[0] += 5
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert budget.expect("prove", 0.0) == 5.0


def test_candidates_come_by_promise_and_never_twice() -> None:
    groups, unserved = group_problems([P, WIDER, P], LIMITS, [FakeKernel()], lambda name: "layout")
    (group,) = groups
    assert unserved == []
    assert group.problems == (P, WIDER)
    seen: list[str] = []
    while offers := next_offers(group, 3, {P: None, WIDER: None}, Correction([], LIMITS), LIMITS):
        assert len(offers) <= 3
        seen += [offer.text for offer in offers]
        group.taken.update(seen)
        group.rounds += 1
    assert len(seen) == len(set(seen)) == 24
    assert FakeTile.parse(seen[0]).width >= 16


def notes_on(folder: Path, identity=IDENTITY, kernel: FakeKernel | None = None) -> Notes:  # type: ignore[no-untyped-def]
    journal = Journal(folder / "journal")
    recall = Recall(journal.entries(), identity, proof=1)
    table = Table.load(folder, identity)
    kernel = kernel or FakeKernel()
    return Notes(journal, table, recall, identity, LIMITS, {kernel.name: kernel})  # type: ignore[dict-item]


def test_a_proof_is_recalled_by_source_and_k(tmp_path: Path) -> None:
    notes, tile = notes_on(tmp_path), FakeTile(2, 2).text()
    notes.proof(tile, P, [576], Proof(Verdict(right=True, checks=("bound",), binary=7), "key", 0.1))
    again = notes_on(tmp_path)
    found = again.recall.proof(again.source_of(tile, P), [576])
    assert found is not None
    assert (found.verdict.binary, found.artefact) == (7, "key")
    assert again.recall.proof(again.source_of(tile, P), [576, 1536]) is None
    assert again.recall.proof(again.source_of(FakeTile(4, 2).text(), P), [576]) is None
    changed = notes_on(tmp_path, kernel=FakeKernel(version="2"))
    assert changed.recall.proof(changed.source_of(tile, P), [576]) is None
    newer = notes_on(tmp_path, dataclasses.replace(IDENTITY, driver="2"))
    assert newer.recall.proof(newer.source_of(tile, P), [576]) is None


def test_a_wrong_verdict_on_one_k_is_wrong_for_all(tmp_path: Path) -> None:
    notes, tile = notes_on(tmp_path), FakeTile(2, 2).text()
    notes.proof(tile, P, [576], Proof(Verdict(right=False, checks=("bound",), failed="bound"), "key", 0.1))
    again = notes_on(tmp_path)
    found = again.recall.proof(again.source_of(tile, P), [576, 1536])
    assert found is not None
    assert not found.verdict.right


def test_a_verdict_of_another_proof_version_is_not_recalled(tmp_path: Path) -> None:
    notes, tile = notes_on(tmp_path), FakeTile(2, 2).text()
    notes.proof(tile, P, [576], Proof(Verdict(right=True, checks=(), version=0), "key", 0.1))
    again = notes_on(tmp_path)
    assert again.recall.proof(again.source_of(tile, P), [576]) is None


def test_screenings_are_joined_on_the_last_ones_scale(tmp_path: Path) -> None:
    notes = notes_on(tmp_path)
    a, b, c = (FakeTile(width, 1).text() for width in (1, 2, 4))

    def screening(**seconds: float) -> Screening:
        arms = {"a": a, "b": b, "c": c}
        return Screening(tuple(Screened(Arm(arms[n], P), s, 3) for n, s in seconds.items()), (), ())

    notes.screening(P, screening(a=10.0, b=5.0))
    notes.screening(P, screening(b=10.0, c=8.0))  # the machine became twice as slow
    again = notes_on(tmp_path)
    assert again.recall.screened(P, again.source_of) == pytest.approx({a: 20.0, b: 10.0, c: 8.0})
    changed = notes_on(tmp_path, kernel=FakeKernel(version="2"))
    assert changed.recall.screened(P, changed.source_of) == {}


def test_screenings_are_not_joined_through_the_luckiest() -> None:
    """a came first; b was best by luck (10 % fast) in the first screening, and is what it is in the second. Joined
    through b, a would look 10 % slower than c, which is equal."""
    first = scale.joined({}, {"a": 1.0, "b": 0.9})
    second = scale.joined(first, {"b": 1.0, "a": 1.0, "c": 1.0})
    assert second["a"] == pytest.approx(second["c"])
    assert second["b"] == pytest.approx(0.9**0.5)
    assert scale.anchor({"slow": 5.0, "a": 1.0, "b": 0.9}) == "a"
    assert scale.joined(second, {"b": 2.0, "c": 2.2}, thorough=True)["c"] == 2.2


def test_strange_entries_are_passed_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.append({"kind": "verdict", "identity": IDENTITY, "verdict": 3})
    journal.append({"kind": "race", "identity": IDENTITY})
    journal.append(entries.run("start", IDENTITY))
    assert notes_on(tmp_path).recall.used == 0


def test_a_joined_verdict_is_wrong_where_its_last_is_and_keeps_the_worst() -> None:
    right = Verdict(right=True, checks=("bound",), shapes=((1, 2, 3),), nmse=1e-7, worst_ratio=0.5)
    wrong = Verdict(right=False, checks=("bound",), failed="bound", shapes=((1, 2, 6),), nmse=1e-8, worst_ratio=3.0)
    both = joined([right, wrong])
    assert not both.right
    assert (both.failed, both.nmse, both.worst_ratio) == ("bound", 1e-7, 3.0)
    assert both.shapes == ((1, 2, 3), (1, 2, 6))
