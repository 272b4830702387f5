"""A tune as the journal tells it: believed before it raced, decided by the races it names, superseding what stood."""

from pathlib import Path

from tests.fakes_loop import WORKLOAD, FakeKernel, FakeStand, FakeTile, budget, places
from warptile.journal import Asked, Journal
from warptile.journal.history import History
from warptile.tune import tune_on


def tuned(folder: Path, stand: FakeStand, asked: Asked | None = None, explore: bool = False) -> History:
    kernel = FakeKernel()
    tune_on(
        stand, WORKLOAD, (128,), budget(stand, 300.0), places(folder), kernels=[kernel], explore_on=explore, asked=asked
    )  # type: ignore[arg-type]
    return History.of(Journal(folder / "state" / "journal"))


def seq(ref: str) -> int:
    return int(ref.rpartition(":")[2])


def test_each_decision_names_its_hypothesis_and_its_races_in_that_order(tmp_path: Path) -> None:
    asked = Asked("tune", ("tune", "tiny.toml"), "wide tiles win")
    history = tuned(tmp_path, FakeStand(), asked)
    believed = {each.ref: each for each in history.hypotheses}
    races = {each.ref: each for each in history.races}
    assert len(history.decisions) == 3
    for decided in history.decisions:
        assert decided.hypothesis is not None
        hypothesis = believed[decided.hypothesis]
        assert (hypothesis.control, hypothesis.arm) == (decided.incumbent, decided.challenger)
        assert [races[ref].stage for ref in decided.races] == ["final", "confirm"]
        assert seq(hypothesis.ref) < min(seq(ref) for ref in decided.races) < seq(decided.ref)
        assert all(races[ref].hypothesis == hypothesis.ref for ref in decided.races)
        assert hypothesis.predicted.ratio is not None
        assert hypothesis.predicted.expect == "gain"
        assert (hypothesis.because, hypothesis.basis) == ("wide tiles win", "person")
        assert races[decided.races[0]].price_incumbent is not None
    (told,) = history.runs.values()
    assert (told.verb, told.command, told.because, told.ended) == ("tune", asked.command, asked.because, "end")
    assert told.limits is not None
    assert told.limits.name == "Fake One"


def test_a_later_tune_supersedes_the_decisions_before(tmp_path: Path) -> None:
    first = tuned(tmp_path, FakeStand())
    both = tuned(tmp_path, FakeStand(build="2"), explore=True)
    before = {each.problem: each.ref for each in first.decisions}
    later = [each for each in both.decisions if each.ref not in before.values()]
    assert later
    assert all(each.supersedes == before[each.problem] for each in later)
    assert all(each.supersedes is None for each in first.decisions)
    assert FakeTile(1, 1).text() in {each.control for each in both.hypotheses}
