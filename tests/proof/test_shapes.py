"""Shapes come from the tile's own boundaries and the problem, and reach whole tiles."""

from __future__ import annotations

import pytest

from warptile.contracts import UnusableInput
from warptile.proof.shapes import Shape, plan
from warptile.tables.table import NEAR

OWN = Shape(128, 1536, 576)


def everything(shape: Shape) -> bool:
    return True


@pytest.mark.parametrize("level", ["quick", "full"])
@pytest.mark.parametrize("steps", [(1, 32, 32), (4, 8, 32), (64, 64, 32), (128, 128, 64), (96, 48, 256)])
def test_every_boundary_is_probed_on_both_sides(level: str, steps: tuple[int, int, int]) -> None:
    shapes = plan(level, steps, OWN, 32, everything).random
    step_m, step_n, step_k = steps
    ms, ns = ({getattr(s, axis) for s in shapes if not s.slice_rows} for axis in "mn")
    for step, seen in ((step_m, ms), (step_n, ns)):
        assert {v for v in (step - 1, step, step + 1, 2 * step - 1, 2 * step, 2 * step + 1) if v} <= seen
    ks = {s.k for s in shapes}
    assert {step_k, step_k + 32, 2 * step_k, 3 * step_k, 576} <= ks
    assert any(s.slice_rows for s in shapes)


def test_the_problems_own_remainder_is_kept() -> None:
    shapes = plan("quick", (48, 100, 32), OWN, 32, everything).random
    assert shapes[0] == Shape(48 + 128 % 48, 100 + 1536 % 100, 576)
    assert plan("quick", (128, 2048, 32), OWN, 32, everything).random[0] == OWN


def test_quick_is_bounded_by_a_few_tiles() -> None:
    quick = plan("quick", (64, 64, 32), Shape(512, 49152, 576), 32, everything)
    assert len(quick.random) <= 15
    assert len(quick.exact) <= 6
    assert max(s.m for s in quick.random) < 3 * 64
    assert max(s.n for s in quick.random) < 3 * 64


def test_k_is_in_whole_blocks_where_a_step_is_less_than_a_block() -> None:
    shapes = plan("full", (8, 8, 32), Shape(8, 64, 1024), 256, everything).random
    assert {s.k for s in shapes} == {256, 512, 768, 1024, 5 * 256}


def test_exact_inputs_run_on_the_problems_k_whole_over_and_in_slices() -> None:
    exact = plan("quick", (64, 64, 32), OWN, 32, everything).exact
    assert any(s.k == 576 for s in exact)
    assert any(s.m % 64 and s.n % 64 for s in exact)
    assert any(s.slice_rows for s in exact)


def test_refused_shapes_are_kept_apart() -> None:
    found = plan("quick", (8, 8, 32), OWN, 32, lambda s: s.m <= 8)
    assert all(s.m <= 8 for s in found.random)
    assert found.refused
    assert all(s.m > 8 for s in found.refused)


def test_the_whole_problem_runs_at_fewer_rows_where_it_is_large() -> None:
    large = Shape(512, 14336, 4096)
    assert plan("quick", (8, 8, 32), OWN, 32, everything).whole == OWN
    assert plan("quick", (8, 8, 32), large, 32, everything).whole == Shape(9, 14336, 4096)
    assert plan("quick", (8, 8, 32), large, 32, lambda s: s.m % 4 == 1).whole == Shape(9, 14336, 4096)
    assert plan("quick", (8, 8, 32), large, 32, lambda s: s.m == 1).whole == Shape(1, 14336, 4096)
    assert plan("quick", (8, 8, 32), large, 32, lambda s: s.m == 512).whole == large
    assert plan("quick", (8, 8, 32), large, 32, everything, own=True).whole == large
    assert plan("full", (8, 8, 32), large, 32, everything).whole == Shape(146, 14336, 4096)


def test_unknown_level() -> None:
    with pytest.raises(UnusableInput, match="quick, full"):
        plan("deep", (1, 1, 1), OWN, 32, everything)


def test_rows_loaded_in_fours_are_probed_at_the_nearest_size_the_rules_allow() -> None:
    shapes = plan("quick", (8, 32, 32), OWN, 32, lambda s: s.n % 4 == 0).random
    ns = {s.n for s in shapes}
    assert {28, 32, 36, 60, 64, 68} <= ns
    assert any(s.slice_rows for s in shapes)


def test_full_reaches_the_rows_that_a_winner_serves_beyond_its_own() -> None:
    shapes = plan("full", (8, 32, 32), Shape(128, 64, 512), 32, everything).random
    assert max(s.m for s in shapes) == NEAR * 128
