"""The loop end to end on a stand without a device: what it finds, survives, keeps and repeats."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.fakes_loop import IDENTITY, WORKLOAD, FakeKernel, FakeStand, FakeTile, budget, places
from warptile.contracts import (
    CandidateRejected,
    CompileFailed,
    DeviceLost,
    OutOfMemory,
    Problem,
    Timeout,
    Untimed,
    UnusableInput,
    Workload,
    WorkloadRow,
)
from warptile.journal import Journal, entries
from warptile.proof.version import PROOF_VERSION
from warptile.tables import Table, rebuild_from
from warptile.tune import tune_on
from warptile.tuning.result import Event, Interrupted, TuneResult

BEST = FakeTile(8, 4).text()
STOCK = FakeTile(1, 1).text()


def run(
    stand: FakeStand,
    folder: Path,
    *,
    seconds: float = 300.0,
    ms: tuple[int, ...] = (128,),
    kernel: FakeKernel | None = None,
    explore: bool = False,
    events: list[Event] | None = None,
    workload: Workload = WORKLOAD,
) -> TuneResult:
    progress = events.append if events is not None else None
    return tune_on(
        stand,
        workload,
        ms,
        budget(stand, seconds),
        places(folder),
        progress,
        explore_on=explore,
        kernels=[kernel or FakeKernel()],  # type: ignore[list-item]
    )


def kinds(folder: Path) -> list[str]:
    return [e["kind"] for e in Journal(folder / "state" / "journal").entries()]


def test_the_fastest_tile_is_found_proved_raced_kept_and_reported(tmp_path: Path) -> None:
    stand, events = FakeStand(), []
    result = run(stand, tmp_path, events=events)
    assert {(row.problem.text(), row.tile, row.decision.outcome) for row in result.rows} == {
        ("Q4_1 n=576 k=576 m=128", BEST, "accept"),
        ("Q4_1 n=1536 k=576 m=128", BEST, "accept"),
        ("Q8_0 n=4096 k=576 m=1", BEST, "accept"),
    }
    for row in result.rows:
        assert row.stock == STOCK
        assert row.ratio == pytest.approx(16, rel=0.02)
        assert row.stock_seconds == pytest.approx(row.problem.flops / 1e9)
    assert result.rows[0].problem.count == 2
    assert sum(row.share for row in result.rows) == pytest.approx(1)
    flops = 2 * 128 * (2 * 576 * 576 + 1536 * 576) + 2 * 4096 * 576
    assert result.sums[0].stock_tokens_per_s == pytest.approx(128 / (flops / 1e9))
    assert result.sums[0].tokens_per_s == pytest.approx(16 * 128 / (flops / 1e9))
    served = Table.load(tmp_path / "state" / "tables", IDENTITY)
    assert len(served.rows()) == 3
    assert {"run", "workload", "verdict", "race", "decision", "table"} <= set(kinds(tmp_path))
    assert {e.stage for e in events} >= {"prove", "race", "decide"}
    assert json.loads(json.dumps(result.to_json()))["rows"][0]["tile"] == BEST


def test_points_are_of_the_type_that_was_asked_for(tmp_path: Path) -> None:
    stand = FakeStand()
    for dtype in ("bf16", None):
        tune_on(stand, WORKLOAD, (128,), budget(stand), places(tmp_path), kernels=[FakeKernel()], dtype=dtype)  # type: ignore[list-item]
    table = Table.load(tmp_path / "state" / "tables", IDENTITY)
    assert {(row.key.x_dtype, row.key.y_dtype) for row in table.rows()} == {("bf16", "bf16"), ("fp32", "fp32")}
    asked = Problem("Q4_1", 576, 576, 128, "fp16", "fp16")
    layout = table.rows()[0].key.layout
    assert table.lookup(asked, layout, PROOF_VERSION) is None
    assert table.lookup(dataclasses.replace(asked, x_dtype="bf16", y_dtype="bf16"), layout, PROOF_VERSION) is not None
    with pytest.raises(UnusableInput, match="not 'fp8'"):
        tune_on(stand, WORKLOAD, (128,), budget(stand), places(tmp_path), dtype="fp8")


def test_the_journal_alone_rebuilds_the_table(tmp_path: Path) -> None:
    run(FakeStand(), tmp_path)
    folder = tmp_path / "state" / "tables"
    rebuilt = rebuild_from(Journal(tmp_path / "state" / "journal"), folder, IDENTITY)
    assert rebuilt.to_json() == Table.load(folder, IDENTITY).to_json()


@pytest.mark.parametrize("seconds", [25.0, 40.0, 100.0])
def test_it_ends_within_its_budget(tmp_path: Path, seconds: float) -> None:
    stand = FakeStand(step_seconds=1.0)
    result = run(stand, tmp_path, seconds=seconds)
    assert stand.now <= seconds
    assert len(result.rows) == 3


def test_a_budget_too_short_for_every_matmul_still_decides_some(tmp_path: Path) -> None:
    """Many numbers of tokens and few seconds: what was screened is raced, and the rest waits for the next run."""
    stand = FakeStand(step_seconds=1.0)
    result = run(stand, tmp_path, seconds=40.0, ms=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512))
    assert stand.now <= 45.0
    assert any(row.race is not None and row.tile != row.stock for row in result.rows)


def test_a_batch_is_compiled_side_by_side_and_proofs_go_to_what_looks_fast(tmp_path: Path) -> None:
    """Stock tiles of all groups first; a second run, whose proofs the journal knows, compiles none of them."""
    stand = FakeStand()
    run(stand, tmp_path, ms=(1, 128))
    proved = {what for step, what in stand.log if step == "prove"}
    assert {STOCK, BEST} <= proved
    assert len(set(stand.compiled_ahead)) > 6
    assert len(proved) < len(set(stand.compiled_ahead)) / 2
    again = FakeStand()
    run(again, tmp_path, ms=(1, 128))
    assert not again.compiled_ahead


def test_faults_of_candidates_are_recorded_and_the_run_goes_on(tmp_path: Path) -> None:
    faults = {
        FakeTile(8, 4).text(): Timeout("took longer than 90 s"),
        FakeTile(16, 4).text(): DeviceLost("died"),
        FakeTile(16, 2).text(): CompileFailed("syntax"),
        FakeTile(16, 1).text(): OutOfMemory("no room"),
    }
    stand = FakeStand(faults=faults, wrong=frozenset([FakeTile(16, 8).text()]))
    result = run(stand, tmp_path)
    bad = {*faults, FakeTile(16, 8).text()}
    assert all(row.tile not in bad for row in result.rows)
    assert all(row.ratio > 1 for row in result.rows)
    lines = list(Journal(tmp_path / "state" / "journal").entries())
    outcomes = {e["tile"]: e["outcome"] for e in lines if e["kind"] == "candidate"}
    assert outcomes.items() <= {t: e.outcome for t, e in faults.items()}.items()
    assert outcomes
    wrong = {e["tile"] for e in lines if e["kind"] == "verdict" and not e["verdict"]["right"]}
    assert wrong <= {FakeTile(16, 8).text()}
    assert result.rejected >= len(outcomes) + len(wrong)


@pytest.mark.parametrize("fault", [Timeout("hung"), Untimed("the device waited for the host")])
def test_a_tile_that_fails_only_in_the_race_is_the_one_to_blame(tmp_path: Path, fault: CandidateRejected) -> None:
    stand = FakeStand(race_faults={BEST: fault})
    result = run(stand, tmp_path)
    assert all(row.tile not in (BEST, STOCK) for row in result.rows)
    blamed = {e["tile"] for e in Journal(tmp_path / "state" / "journal").entries() if e["kind"] == "candidate"}
    assert blamed == {BEST}


def test_a_rejected_stock_tile_is_said_and_the_run_goes_on(tmp_path: Path) -> None:
    result = run(FakeStand(wrong=frozenset([STOCK])), tmp_path)
    assert all(row.stock is None and row.stock_seconds is None and row.tile == BEST for row in result.rows)
    assert any(STOCK in note for note in result.notes)
    assert result.sums[0].stock_seconds is None


def test_what_the_machine_did_once_is_tried_again_and_the_winner_meets_the_stock(tmp_path: Path) -> None:
    first = run(FakeStand(faults={STOCK: DeviceLost("killed")}), tmp_path)
    assert all(row.stock is None for row in first.rows)
    assert any("killed" in note for note in first.notes)
    stand = FakeStand()
    second = run(stand, tmp_path)
    assert ("prove", STOCK) in stand.log
    for row in second.rows:
        assert (row.stock, row.tile) == (STOCK, BEST)
        assert row.ratio == pytest.approx(16, rel=0.02)
        assert row.stock_seconds == pytest.approx(row.problem.flops / 1e9)


@pytest.mark.parametrize("fault", [Timeout("slow"), Untimed("the device waited for the host")])
def test_what_failed_twice_is_out_and_no_stock_time_is_made_up(tmp_path: Path, fault: CandidateRejected) -> None:
    for _ in range(2):
        run(FakeStand(faults={STOCK: fault}), tmp_path)
    stand = FakeStand()
    result = run(stand, tmp_path)
    assert ("prove", STOCK) not in stand.log
    assert all(row.stock is None and row.stock_seconds is None for row in result.rows)
    assert result.sums[0].stock_tokens_per_s is None
    assert any(str(fault) in note for note in result.notes)


def test_stock_stays_where_nothing_is_faster(tmp_path: Path) -> None:
    result = run(FakeStand(), tmp_path, kernel=FakeKernel(stock=FakeTile(8, 4)))
    for row in result.rows:
        assert (row.tile, row.ratio, row.decision.outcome) == (BEST, 1.0, "reject"), row.decision
        assert row.race is not None
        assert row.race.ratio < 1


def test_a_second_run_rechecks_and_repeats_nothing(tmp_path: Path) -> None:
    first = FakeStand()
    run(first, tmp_path)
    second = FakeStand()
    result = run(second, tmp_path)
    assert result.rechecked
    assert {row.reuse for row in result.rows} == {"rechecked"}
    assert sorted(step for step, _ in second.log) == ["prove"] * 3 + ["race"] * 3
    assert {row.tile for row in result.rows} == {BEST}
    assert any("--explore" in hint.words for hint in result.hints)


@pytest.mark.parametrize("steps", range(1, 32, 4))
def test_an_interrupted_run_resumes_without_repeating(tmp_path: Path, steps: int) -> None:
    stopped = FakeStand(interrupt_at=steps)
    with pytest.raises(Interrupted, match="resumes"):
        run(stopped, tmp_path)
    resumed = FakeStand()
    result = run(resumed, tmp_path)
    assert all(row.tile == BEST for row in result.rows)
    proved = [what for step, what in stopped.log if step == "prove"]
    again = [what for step, what in resumed.log if step == "prove"]
    # Q4_1 and Q8_0 have the same source here, so each tile is proved once for both.
    assert not set(proved) & set(again) or any(row.reuse == "rechecked" for row in result.rows)


def test_a_new_driver_makes_the_table_stale_and_everything_is_measured_again(tmp_path: Path) -> None:
    run(FakeStand(), tmp_path)
    newer = FakeStand(identity=dataclasses.replace(IDENTITY, driver="2.0"), factor={BEST: 3.0})
    result = run(newer, tmp_path)
    assert not result.rechecked
    assert all(row.tile not in (BEST, STOCK) for row in result.rows)
    assert ("prove", BEST) in newer.log


def test_a_changed_kernel_is_proved_anew(tmp_path: Path) -> None:
    run(FakeStand(), tmp_path)
    changed = FakeStand(wrong=frozenset([BEST]))
    result = run(changed, tmp_path, kernel=FakeKernel(version="2"))
    assert all(row.tile != BEST for row in result.rows)


def test_a_winner_that_slowed_down_is_searched_anew(tmp_path: Path) -> None:
    run(FakeStand(), tmp_path)
    slower = FakeStand(factor={BEST: 20.0})
    result = run(slower, tmp_path)
    assert all(row.tile not in (BEST, STOCK) for row in result.rows)
    assert any("no longer faster" in note for note in result.notes)


def test_another_compiled_input_is_measured_again(tmp_path: Path) -> None:
    run(FakeStand(), tmp_path)
    rebuilt = FakeStand(build="2", factor={BEST: 3.0})
    result = run(rebuilt, tmp_path, kernel=FakeKernel(version="2"))
    assert any("another binary" in note for note in result.notes)
    assert all(row.tile not in (BEST, STOCK) for row in result.rows)


def test_a_finished_race_of_a_killed_run_is_not_repeated(tmp_path: Path) -> None:
    whole = FakeStand()
    run(whole, tmp_path / "whole")
    first_race = [step for step, _ in whole.log].index("race")
    stopped = FakeStand(interrupt_at=first_race + 1)
    with pytest.raises(Interrupted):
        run(stopped, tmp_path)
    (raced,) = [what for step, what in stopped.log if step == "race"]
    resumed = FakeStand()
    run(resumed, tmp_path)
    assert [what for step, what in resumed.log if step == "race"].count(raced) == 1  # the confirmation alone


def test_forgetting_a_winner_forgets_its_timings_but_not_its_proofs(tmp_path: Path) -> None:
    run(FakeStand(), tmp_path)
    table = Table.load(tmp_path / "state" / "tables", IDENTITY)
    for row in table.rows():
        table.forget(row.key)
        Journal(tmp_path / "state" / "journal").append(entries.table(IDENTITY, "forget", row.key))
    table.save()
    again = FakeStand(factor={BEST: 3.0})
    result = run(again, tmp_path)
    assert all(row.tile not in (BEST, STOCK) for row in result.rows)
    assert not any(step == "prove" and tile in (BEST, STOCK) for step, tile in again.log)


def test_what_a_short_budget_timed_out_a_longer_one_tries_again(tmp_path: Path) -> None:
    slow = {BEST: 60.0}
    first = run(FakeStand(proof_seconds=slow), tmp_path, seconds=50)
    assert all(row.tile != BEST for row in first.rows)
    second = FakeStand(proof_seconds=slow)
    result = run(second, tmp_path, seconds=300, explore=True)
    assert ("prove", BEST) in second.log
    assert all(row.tile == BEST for row in result.rows)


def test_a_race_cut_short_by_the_budget_is_raced_by_the_next_run(tmp_path: Path) -> None:
    hurried = run(FakeStand(round_seconds=10.0), tmp_path)
    assert {row.decision.outcome for row in hurried.rows} == {"undecided"}
    assert all(row.tile == STOCK and row.seconds == row.stock_seconds > 0 for row in hurried.rows)
    assert "resumes" in hurried.hints[0].why
    result = run(FakeStand(), tmp_path)
    assert {(row.tile, row.decision.outcome, row.reuse) for row in result.rows} == {(BEST, "accept", "resumed")}


def test_the_best_of_all_screenings_are_compared_once_more(tmp_path: Path) -> None:
    result = run(FakeStand(unlucky=BEST), tmp_path)
    assert all(row.tile == BEST for row in result.rows)


def test_explore_searches_on_from_the_winners(tmp_path: Path) -> None:
    run(FakeStand(), tmp_path, seconds=30)
    more = FakeStand()
    result = run(more, tmp_path, explore=True)
    assert any(step == "screen" for step, _ in more.log)
    assert all(row.tile == BEST for row in result.rows)


def test_several_ms_are_tuned_and_the_output_row_is_shared(tmp_path: Path) -> None:
    result = run(FakeStand(), tmp_path, ms=(1, 128))
    assert [s.m for s in result.sums] == [1, 128]
    assert [row.problem.m for row in result.rows] == [1, 1, 1, 128, 128, 1]
    assert len(Table.load(tmp_path / "state" / "tables", IDENTITY).rows()) == 3


def test_a_matmul_without_a_kernel_is_listed_and_left_out(tmp_path: Path) -> None:
    rows = (*WORKLOAD.rows, WorkloadRow("Q4_K", 0, 256, "linear", ("narrow",), 1))
    result = run(FakeStand(), tmp_path, workload=dataclasses.replace(WORKLOAD, rows=rows))
    assert [p.text() for p, _ in result.unserved] == ["Q4_K n=0 k=256 m=128"]
    assert "width <= n" in result.unserved[0][1]
    assert result.sums[0].missing == 1


def test_a_corrupt_journal_line_is_a_note_and_not_the_end(tmp_path: Path) -> None:
    run(FakeStand(), tmp_path)
    (file,) = (tmp_path / "state" / "journal").glob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + b"garbage\n" + b"".join(lines[1:]))
    result = run(FakeStand(), tmp_path)
    assert any("line 2: not JSON" in note for note in result.notes)


def test_a_journal_of_garbage_is_one_note(tmp_path: Path) -> None:
    run(FakeStand(), tmp_path)
    (file,) = (tmp_path / "state" / "journal").glob("*.jsonl")
    file.write_bytes(b"garbage\n" * 1000)
    result = run(FakeStand(), tmp_path)
    assert [note for note in result.notes if "999 more of its lines" in note] == list(result.notes)


def test_where_no_matmul_has_a_kernel_no_winner_is_promised(tmp_path: Path) -> None:
    rows = (WorkloadRow("Q4_K", 0, 256, "linear", ("narrow",), 1),)
    result = run(FakeStand(), tmp_path, workload=dataclasses.replace(WORKLOAD, rows=rows))
    assert not result.rows
    assert not any("winners" in str(hint) for hint in result.hints)
