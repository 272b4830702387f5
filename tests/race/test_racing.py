"""The race on a simulated device: pairing, interleaving, rotation, identity, budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.fakes import FakeKernel, FakeRuntime, FakeTile, TwoPassKernel
from tests.race.arms import KERNEL, PROBLEM, arm, bench, ids, number_of, resolve, simulated, weights_of
from warptile.contracts import Arm, CompileFailed, Launch, Limits, Problem, Race, Source, UnusableInput, Wrong
from warptile.race import Terms, close_bench, decide, open_bench, play_off, race, screen
from warptile.race.bench import UNPROVED
from warptile.race.racing import plan


def raced(
    runtime: FakeRuntime,
    challengers: list[int],
    budget: float = 60.0,
    seed: int = 3,
    expected: dict[str, int] | None = None,
    **more: object,
) -> list[Race]:
    terms = Terms(bench(runtime), seed, budget, expected, resolve, runtime.clock)
    return race(runtime, arm(0), [arm(i) for i in challengers], terms, **more)  # type: ignore[arg-type]


def test_ratios_and_floor_are_those_of_the_device() -> None:
    faster, slower = raced(simulated([0.010, 0.008, 0.013]), [1, 2])
    assert faster.ratio == pytest.approx(1.25, rel=0.03)
    assert faster.low < 1.25 < faster.high
    assert slower.ratio == pytest.approx(10 / 13, rel=0.03)
    assert 0 < faster.floor < 0.03
    assert faster.incumbent_seconds == pytest.approx(0.010, rel=0.03)
    assert faster.challenger_seconds == pytest.approx(0.008, rel=0.03)
    assert faster.rounds == len(faster.challenger_samples) == 40
    assert faster.challenger == arm(1)
    assert slower.high < 1
    assert slower.rounds == 12, "an arm that can only be rejected is timed no further"


def test_every_round_times_every_arm_and_the_incumbent_twice_in_a_new_order() -> None:
    runtime = simulated([0.01, 0.0099])
    calls: list[list[int]] = []
    inner = runtime.time

    def time(launches):  # type: ignore[no-untyped-def]
        calls.append([number_of(launch) for launch in launches])
        return inner(launches)

    runtime.time = time  # type: ignore[method-assign]
    raced(runtime, [1])
    assert all(sorted(call) == [0, 0, 1] for call in calls)
    assert len({tuple(call) for call in calls}) == 3


def test_weight_copies_rotate_past_the_cache() -> None:
    runtime = simulated([0.01, 0.01], cache_bytes=4000)
    held = bench(runtime)
    assert held.rotated_bytes > held.cache_bytes == 4000
    found = raced(runtime, [1])[0]
    assert found.copies >= 4
    assert found.rotated_bytes > found.cache_bytes
    used = [id(launch.buffers[1]) for launch in runtime.timed]
    for first in range(0, len(used) - found.copies, found.copies):
        assert len(set(used[first : first + found.copies])) == found.copies


def test_a_race_within_the_cache_says_so() -> None:
    runtime = simulated([0.010, 0.008], cache_bytes=1 << 30)
    held = bench(runtime, memory_bytes=2000)
    assert held.rotated_bytes <= 2000 < held.cache_bytes
    found = race(runtime, arm(0), [arm(1)], Terms(held, 0, 60, resolve=resolve, clock=runtime.clock))[0]
    assert "weights within the cache" in decide(found).reason


def test_short_runs_are_averaged_over_several_copies() -> None:
    runtime = simulated([2e-4, 1e-4])
    found = raced(runtime, [1])[0]
    assert found.ratio == pytest.approx(2, rel=0.03)
    of_challenger = sum(number_of(launch) == 1 for launch in runtime.timed)
    assert of_challenger >= (16 + 4) * 40


def test_equal_arms_get_equally_many_runs_whatever_one_of_them_took_in_the_warm_up() -> None:
    """The mean of several skewed runs has another median than one run: unequal numbers would make equal arms differ."""
    runtime = simulated([5e-4, 5e-4], noise=1.0, seed=4)
    raced(runtime, [1])
    of_challenger = sum(number_of(launch) == 1 for launch in runtime.timed[-9 * 40 :])
    assert of_challenger * 3 == len(runtime.timed[-9 * 40 :])


def test_each_arm_meets_its_share_of_a_submissions_ends() -> None:
    """16 runs in four series of blocks, each led by a run that does not count; the order is drawn anew."""
    found = plan(3, 16, np.random.default_rng(0))
    assert len(found) == 3 * (16 + 4)
    assert sum(counts for _, counts in found) == 3 * 16
    blocks = [found[i : i + 5] for i in range(0, 60, 5)]
    assert all(len({arm for arm, _ in block}) == 1 and not block[0][1] for block in blocks)
    orders = {tuple(block[0][0] for block in blocks[i : i + 3]) for i in range(0, 12, 3)}
    assert all(sorted(order) == [0, 1, 2] for order in orders)
    assert len(orders) > 1
    assert sorted(plan(3, 1, np.random.default_rng(0))) == [(0, True), (1, True), (2, True)]


def test_an_open_race_ends_when_it_is_settled() -> None:
    """Twice as fast: 12 rounds. As fast, or 2 % faster: until the interval says so."""
    found = {}
    for name, seconds in (("twice", 5e-3), ("same", 1e-2), ("a little", 1e-2 / 1.02)):
        (found[name],) = raced(simulated([1e-2, seconds], noise=0.02), [1], rounds=12, most_rounds=1536)
    assert found["twice"].rounds == 12
    assert found["same"].high < 1.01
    assert found["a little"].low > 1 + found["a little"].floor
    assert all(12 < found[name].rounds <= 768 for name in ("same", "a little"))
    assert decide(found["same"]).outcome == "reject"


def test_a_play_off_finds_the_fastest_of_many_close_arms() -> None:
    """40 arms, one 3 % faster, noise of 5 %; what it reports of the others is beside the winner."""
    seconds = [0.01] * 40
    seconds[23] = 0.01 / 1.03
    runtime = simulated(seconds, noise=0.05)
    arms = [arm(i) for i in range(40)]
    found = play_off(runtime, arms, Terms(bench(runtime), 0, 120, resolve=resolve, clock=runtime.clock))
    assert found.survivors[0].arm == arm(23)
    assert {s.arm for s in (*found.survivors, *found.dropped)} == set(arms)
    assert min(s.seconds for s in found.dropped) > found.survivors[0].seconds


def test_a_play_off_of_clear_arms_is_short_and_ends_in_time() -> None:
    runtime = simulated([0.01, 0.02, 0.03], noise=0.003)
    arms = [arm(i) for i in range(3)]
    for budget, most in ((60.0, 3.0), (0.2, 0.4)):
        start = runtime.now
        found = play_off(runtime, arms, Terms(bench(runtime), 0, budget, resolve=resolve, clock=runtime.clock))
        assert found.survivors[0].arm == arm(0)
        assert runtime.now - start < most


def test_everything_is_compiled_before_anything_is_timed() -> None:
    runtime = simulated([0.01, 0.01, 0.01])
    inner = runtime.compile

    def compile(source, instrument="none"):  # type: ignore[no-untyped-def]
        assert not runtime.timed
        return inner(source, instrument)

    runtime.compile = compile  # type: ignore[method-assign]
    raced(runtime, [1, 2])


def test_a_race_ends_at_most_one_round_past_its_budget() -> None:
    for budget in (0.0, 0.05, 0.3, 1.0):
        runtime = simulated([0.01, 0.02, 0.01])
        found = raced(runtime, [1, 2], budget=budget)
        assert runtime.now <= budget + 1.2 * 0.05
        assert len(found) == 2
        if budget < 0.3:
            assert decide(found[0]).outcome == "undecided"


def test_warm_up_waits_for_a_clock_that_settles() -> None:
    """A device three times slower at first: none of that is in the samples."""
    runtime = simulated([0.01, 0.01], noise=0.005)
    settled = runtime.seconds
    runtime.seconds = lambda launch, now: settled(launch, now) * (1 + 2 * np.exp(-now / 0.1))
    found = raced(runtime, [1])[0]
    assert max(found.incumbent_samples) < 0.0115


def test_a_binary_that_is_not_the_proved_one_is_not_raced() -> None:
    runtime = simulated([0.01, 0.01])
    proved = ids(runtime, [arm(0), arm(1)])
    raced(runtime, [1], expected=proved)
    with pytest.raises(Wrong, match="proved was nothing"):
        raced(runtime, [2], expected=proved)
    with pytest.raises(Wrong, match="proved was"):
        raced(runtime, [1], expected=proved | {arm(1).tile: 7})


def test_a_device_that_runs_another_binary_is_caught() -> None:
    runtime = simulated([0.01, 0.01])
    runtime.programs["executed"] = lambda binary: binary.id ^ 1  # type: ignore[assignment,return-value,attr-defined]
    with pytest.raises(Wrong, match="timed binary"):
        raced(runtime, [1])


def test_the_launches_of_an_arm_are_summed_helpers_included() -> None:
    """A helper that takes as long again makes an arm twice as slow, whatever its main launch takes."""
    kernel = TwoPassKernel()
    runtime = FakeRuntime(kernel.programs(), lambda launch, now: 0.01)

    def both(text: str) -> tuple[FakeKernel, FakeTile]:
        tile = FakeTile.parse(text)
        return (kernel if tile.number else KERNEL), tile

    found = race(runtime, arm(0), [arm(1)], Terms(bench(runtime), 0, 60, resolve=both, clock=runtime.clock))[0]
    assert found.incumbent_seconds == pytest.approx(0.01)
    assert found.challenger_seconds == pytest.approx(0.02)
    assert found.ratio == pytest.approx(0.5)


def test_a_helper_that_is_not_the_arms_is_caught() -> None:
    kernel = TwoPassKernel()
    runtime = FakeRuntime(kernel.programs(), lambda launch, now: 0.01)
    strange = Arm(FakeTile(fault="strange_helper").text(), PROBLEM)
    with pytest.raises(Wrong, match="not of the arm's"):
        race(
            runtime,
            strange,
            [],
            Terms(bench(runtime), 0, 1, resolve=lambda text: (kernel, FakeTile.parse(text)), clock=runtime.clock),
        )


def test_a_clock_that_stands_still_is_no_measurement() -> None:
    runtime = simulated([0.0, 0.0])
    with pytest.raises(Wrong, match="no time passing"):
        raced(runtime, [1])


def test_an_arm_of_another_problem_is_refused() -> None:
    runtime = simulated([0.01])
    other = Arm(arm(0).tile, Problem("Q4_0", 24, 64, 4))
    with pytest.raises(UnusableInput, match="m=4"):
        race(runtime, other, [], Terms(bench(runtime), 0, 1, resolve=resolve))


def test_a_bench_is_freed_whole_even_when_an_upload_fails() -> None:
    runtime = simulated([0.01])
    close_bench(runtime, bench(runtime))
    assert runtime.live == 0
    upload, left = weights_of(runtime), [2]

    def failing():  # type: ignore[no-untyped-def]
        if not left[0]:
            raise MemoryError
        left[0] -= 1
        return upload()

    with pytest.raises(MemoryError):
        open_bench(runtime, PROBLEM, failing, 1 << 20, 0)
    assert runtime.live == 0


def test_screening_finds_the_fastest_and_reports_every_arm() -> None:
    seconds = [0.02 + 0.001 * i for i in range(30)]
    seconds[17], seconds[5], seconds[9], seconds[23] = 0.010, 0.0105, 0.011, 0.2
    runtime = simulated(seconds)
    arms = [arm(i) for i in range(30)]
    found = screen(runtime, arms, Terms(bench(runtime), 0, 60, resolve=resolve, clock=runtime.clock))
    assert [s.arm for s in found.survivors] == [arm(17), arm(5), arm(9)]
    assert found.survivors[0].seconds == pytest.approx(0.010, rel=0.03)
    assert {s.arm for s in (*found.survivors, *found.dropped)} == set(arms)
    assert found.unmeasured == ()
    hopeless = next(s for s in found.dropped if s.arm == arm(23))
    assert hopeless.samples == 1


def test_screening_stops_in_time_and_names_what_it_did_not_measure() -> None:
    runtime = simulated([0.01] * 64)
    arms = [arm(i) for i in range(64)]
    found = screen(runtime, arms, Terms(bench(runtime), 0, 0.3, resolve=resolve, clock=runtime.clock))
    assert runtime.now <= 0.3 + 0.03
    assert found.unmeasured
    assert len(found.survivors) == 4
    assert len(found.survivors) + len(found.dropped) + len(found.unmeasured) == 64


def test_a_tile_that_does_not_compile_is_set_aside_unless_it_was_proved() -> None:
    """One of many that are screened unproved must not cost the others their screening; of a proved one it is news."""

    class Refusing(FakeKernel):
        def source(self, tile: Any, problem: Problem, limits: Limits) -> Source:
            if tile.number == 2:
                raise CompileFailed("ptxas: registers")
            return super().source(tile, problem, limits)

    def refusing(text: str) -> tuple[FakeKernel, FakeTile]:
        return Refusing(), FakeTile.parse(text)

    runtime = simulated([0.01, 0.02, 0.001, 0.03])
    arms = [arm(i) for i in range(4)]
    proved = ids(runtime, arms)
    wanted = {**dict.fromkeys(proved, UNPROVED), arm(0).tile: proved[arm(0).tile]}
    found = screen(runtime, arms, Terms(bench(runtime), 0, 60, expected=wanted, resolve=refusing, clock=runtime.clock))
    assert found.survivors[0].arm == arm(0)
    assert [(a, str(error)) for a, error in found.refused] == [(arm(2), "ptxas: registers")]
    assert len(found.survivors) + len(found.dropped) == 3
    with pytest.raises(CompileFailed):
        screen(runtime, arms, Terms(bench(runtime), 0, 60, expected=proved, resolve=refusing, clock=runtime.clock))


def test_a_whole_tune_of_equal_arms_accepts_none_and_of_a_faster_one_that_one() -> None:
    """Screen, race and confirm through the public functions, 12 tunes each."""
    outcomes = []
    for gain in (1.0, 1.12):
        for seed in range(12):
            runtime = simulated([0.01] * 15 + [0.01 / gain], noise=0.03, seed=seed)
            arms = [arm(i) for i in range(1, 16)]
            picked = (
                screen(runtime, arms, Terms(bench(runtime), seed, 60, resolve=resolve, clock=runtime.clock))
                .survivors[0]
                .arm
            )
            first, again = (
                race(runtime, arm(0), [picked], Terms(bench(runtime), s, 60, resolve=resolve, clock=runtime.clock))[0]
                for s in (seed, seed + 1000)
            )
            outcomes.append((gain, decide(first, again).outcome))
    assert (1.0, "accept") not in outcomes
    assert outcomes.count((1.12, "accept")) >= 11


def test_an_idle_card_does_not_cost_the_arms_that_were_first_their_place() -> None:
    """Arms come most promising first, so the best of them met the card at a fifth of its clock."""
    seconds = [17e-6, 18e-6, *[25e-6] * 6]
    rng = np.random.default_rng(0)

    def taken(launch: Launch, now: float) -> float:
        idle = 5.0 if now < 5e-4 else 1.0
        return float(seconds[number_of(launch)] * idle * np.exp(rng.normal(0, 0.01)))

    runtime = FakeRuntime(KERNEL.programs(), taken, 4000)
    arms = [arm(i) for i in range(len(seconds))]
    found = screen(runtime, arms, Terms(bench(runtime), 0, 60, resolve=resolve, clock=runtime.clock))
    assert {found.survivors[0].arm, found.survivors[1].arm} == {arm(0), arm(1)}
    assert found.survivors[0].seconds == pytest.approx(17e-6, rel=0.1)
