"""Every way a kernel is known to have fooled a harness, planted, and the check that must speak."""

from __future__ import annotations

import pytest

from tests.fakes import Call, FakeKernel, FakeRuntime, FakeTile, TwoPassKernel
from warptile.contracts import DoesNotFit, InvalidTile, Problem, Timeout, UnusableInput, Verdict
from warptile.proof import PROOF_VERSION, ReferenceCache, prove
from warptile.proof.checks import DIRECT

PROBLEM = Problem("Q4_1", n=576, k=768, m=128)
FORMATS = ("Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q4_K", "Q6_K")


@pytest.fixture(scope="module")
def cache() -> ReferenceCache:
    return ReferenceCache()


def verdict(
    cache: ReferenceCache, fault: str, *, weights: str = "fp32", problem: Problem = PROBLEM, tile_k: int = 32
) -> Verdict:
    kernel = FakeKernel(weights)
    runtime = FakeRuntime(kernel.programs())
    found = prove(runtime, kernel, FakeTile(fault=fault, tile_k=tile_k), problem, cache=cache)
    assert runtime.live == 0, "the proof must free its buffers, whatever it finds"
    return found


@pytest.mark.parametrize("weights", ["fp32", "fp16"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_right_kernel_is_right(cache: ReferenceCache, name: str, weights: str) -> None:
    found = verdict(cache, "none", weights=weights, problem=Problem(name, 576, 768, 128))
    assert found.right
    assert found.failed == ""
    assert 0 < found.worst_ratio < 1
    # fp16 operands move by 2^-10 relative at most, independently; twice that for the spread of 64 wanted squares.
    assert found.nmse < 2 * 2 * 2.0**-20
    assert found.checks == DIRECT
    assert found.version == PROOF_VERSION
    assert found.binary != 0


@pytest.mark.parametrize("fault", ["none", "wrong_cell", "floor_n", "flipped_late_code_bit"])
def test_activations_and_outputs_in_fp16(cache: ReferenceCache, fault: str) -> None:
    problem = Problem("Q4_1", 576, 768, 128, x_dtype="fp16", y_dtype="fp16")
    found = verdict(cache, fault, weights="fp16", problem=problem)
    expected = {"none": "", "wrong_cell": "bound", "floor_n": "written", "flipped_late_code_bit": "exact"}
    assert found.failed == expected[fault], found.detail


FAULTS = {
    "wrong_cell": "bound",
    "wrong_beyond_two_tiles": "bound",
    "flipped_code_bit": "bound",
    "flushes_subnormal_scales": "bound",
    "neighbours_scale": "nmse",
    "k_tail": "bound",
    "nondeterministic": "deterministic",
    "floor_n": "written",
    "floor_m": "written",
    "forgets_row0": "written",
    "accumulates": "finite",
    "reads_past_k": "finite",
    "writes_past_y": "guards",
    "writes_before_w": "guards",
    "modifies_x": "inputs",
    "modifies_w": "inputs",
    "stale_id": "launch",
    "empty_grid": "launch",
    "other_binary": "launch",
}


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("weights", ["fp32", "fp16"])
@pytest.mark.parametrize(("fault", "check"), FAULTS.items())
def test_a_planted_fault_is_named_by_its_check(cache: ReferenceCache, fault: str, check: str, weights: str) -> None:
    found = verdict(cache, fault, weights=weights, tile_k=96 if fault in {"k_tail", "reads_past_k"} else 32)
    assert not found.right
    assert found.failed == check, found.detail


@pytest.mark.parametrize(
    ("fault", "check"),
    {
        "none": "",
        "no_helper": "finite",  # every run finds the scratch poisoned, though the run before left it right
        "helper_alone": "launch",
        "strange_helper": "launch",
        "helper_forgets_the_last": "finite",
        "helper_writes_past": "guards",
        "wrong_cell": "bound",
    }.items(),
)
def test_a_kernel_of_two_passes(cache: ReferenceCache, fault: str, check: str) -> None:
    kernel = TwoPassKernel()
    runtime = FakeRuntime(kernel.programs())
    assert prove(runtime, kernel, FakeTile(), PROBLEM, cache=cache).right
    found = prove(runtime, kernel, FakeTile(fault=fault), PROBLEM, cache=cache)
    assert found.failed == check, found.detail
    assert found.right == (not check)


@pytest.mark.parametrize("wavers_at", [None, 27])
def test_code_with_a_hazard_is_right_only_after_many_equal_runs(cache: ReferenceCache, wavers_at: int | None) -> None:
    """The two runs of each shape are not enough for what goes wrong in one of many."""
    kernel = FakeKernel()
    runs: list[Call] = []

    def program(call: Call) -> None:
        kernel.run(call)
        m, rows, *_ = call.launch.scalars
        repeats = [c for c in runs if c.launch is call.launch]
        runs.append(call)
        if wavers_at is not None and len(repeats) == wavers_at:
            call.payload(2, "fp32").reshape(-1)[m * rows // 2] += 1

    runtime = FakeRuntime({"matmul": program})
    runtime.hazards = lambda binary: ("an old assembler",)  # type: ignore[attr-defined]
    found = prove(runtime, kernel, FakeTile(), PROBLEM, cache=cache)
    assert found.right == (wavers_at is None), found.detail
    assert found.failed == ("" if wavers_at is None else "hazard")
    said = "accepted on 30 runs" if wavers_at is None else "run 28 of 30"
    assert found.detail.startswith(f"an old assembler: {said}")
    assert "an old assembler" not in prove(FakeRuntime(kernel.programs()), kernel, FakeTile(), PROBLEM).detail


def test_one_wrong_code_bit_hides_in_the_fp16_bound_and_is_caught_by_exact_inputs(cache: ReferenceCache) -> None:
    """At k = 768 rounding operands to fp16 may move a sum by more than one wrong code does."""
    found = verdict(cache, "flipped_late_code_bit", weights="fp16")
    assert found.failed == "exact", found.detail
    assert verdict(cache, "flipped_late_code_bit", weights="fp32").failed == "bound"


def test_the_first_wrong_element_is_named(cache: ReferenceCache) -> None:
    found = verdict(cache, "wrong_cell")
    wrong = found.first_wrong
    assert wrong is not None
    m, n, _ = found.shapes[-1]
    assert (wrong.row, wrong.column) == (m - 1, n - 1)
    assert abs(wrong.got - wrong.want) > wrong.bound > 0


def test_a_wrong_cell_passes_nmse(cache: ReferenceCache) -> None:
    """Which is why the per-element bound exists."""
    assert verdict(cache, "wrong_cell").nmse < 5e-4


def test_a_kernel_compiled_for_one_n_is_proved_on_that_n(cache: ReferenceCache) -> None:
    found = verdict(cache, "shape_in_source", problem=Problem("Q4_1", 200, 64, 8))
    assert found.right
    assert (8, 200, 64) in found.shapes


@pytest.mark.parametrize("weights", ["fp32", "fp16"])
def test_a_fault_beyond_the_boundary_shapes_is_found_on_the_whole_problem(cache: ReferenceCache, weights: str) -> None:
    """An index that wraps at 128 rows: no boundary shape of this tile has as many."""
    problem = Problem("Q4_1", 200, 64, 8)
    found = verdict(cache, "wraps_after_128_rows", weights=weights, problem=problem)
    assert not found.right
    assert found.shapes[-1] == (8, 200, 64)
    assert found.first_wrong is None or found.first_wrong.column >= 128


def test_shapes_that_never_reach_a_whole_tile_prove_nothing(cache: ReferenceCache) -> None:
    kernel = FakeKernel(rule=lambda tile, problem: problem.n < tile.tile_n or problem.n == PROBLEM.n)
    runtime = FakeRuntime(kernel.programs())
    found = prove(runtime, kernel, FakeTile(tile_n=2048), PROBLEM, cache=cache)
    assert (found.right, found.failed) == (False, "reached")


def test_refused_shapes_are_reported(cache: ReferenceCache) -> None:
    kernel = FakeKernel(rule=lambda tile, problem: problem.n % 2 == 0)
    found = prove(FakeRuntime(kernel.programs()), kernel, FakeTile(), PROBLEM, cache=cache)
    assert found.right
    assert "outside the tile's rules" in found.detail
    assert all(n % 2 == 0 for _, n, _ in found.shapes)


def test_a_tile_that_breaks_a_rule_on_the_problem_is_refused(cache: ReferenceCache) -> None:
    kernel = FakeKernel(rule=lambda tile, problem: False)
    with pytest.raises(InvalidTile, match="the fake's rule") as raised:
        prove(FakeRuntime(kernel.programs()), kernel, FakeTile(), PROBLEM, cache=cache)
    assert not isinstance(raised.value, DoesNotFit)


def test_an_unknown_level_is_an_error(cache: ReferenceCache) -> None:
    kernel = FakeKernel()
    with pytest.raises(UnusableInput, match="deeper"):
        prove(FakeRuntime(kernel.programs()), kernel, FakeTile(), PROBLEM, "deeper", cache=cache)


def test_arithmetic_without_a_bound_is_not_right(cache: ReferenceCache) -> None:
    found = verdict(cache, "none", weights="q8_1")
    assert (found.right, found.failed) == (False, "bound")
    assert "q8_1" in found.detail


def test_a_proof_past_its_deadline_is_a_timeout(cache: ReferenceCache) -> None:
    kernel = FakeKernel()
    ticks = iter(range(100))
    with pytest.raises(Timeout, match="deadline"):
        prove(
            FakeRuntime(kernel.programs()), kernel, FakeTile(), PROBLEM, deadline=3.0, cache=cache,
            clock=lambda: float(next(ticks)),
        )  # fmt: skip


def test_real_weights_are_proved_beside_drawn_ones(cache: ReferenceCache) -> None:
    import numpy as np

    from warptile import formats
    from warptile.proof.weights import random_blocks

    fmt = formats.by_name("Q4_1")
    blocks = random_blocks(fmt, 20 * 24, np.random.default_rng(5)).reshape(20, -1)
    kernel = FakeKernel()
    found = prove(FakeRuntime(kernel.programs()), kernel, FakeTile(), PROBLEM, blocks=blocks, cache=cache)
    assert found.right
    assert any(n == 20 and k == 768 for _, n, k in found.shapes)
    with pytest.raises(UnusableInput, match="real weights"):
        prove(FakeRuntime(kernel.programs()), kernel, FakeTile(), PROBLEM, blocks=blocks[:, :-1], cache=cache)


def test_full_takes_every_combination(cache: ReferenceCache) -> None:
    kernel = FakeKernel()
    problem = Problem("Q4_1", 40, 64, 9)
    found = prove(FakeRuntime(kernel.programs()), kernel, FakeTile(), problem, "full", cache=cache)
    assert found.right
    reached = set(found.shapes)
    for m in (7, 8, 9, 15, 16, 17):
        for n in (7, 8, 9, 15, 16, 17):
            for k in (32, 64, 96):
                assert (m, n, k) in reached
    assert (9, 40, 64) in reached
