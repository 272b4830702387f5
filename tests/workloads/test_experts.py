"""How tokens spread over experts: what the price, the races and the table's key are about."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from warptile.contracts import Problem, UnusableInput
from warptile.tables import Key
from warptile.workloads import from_shapes
from warptile.workloads.experts import draw_ids, expected_tiles, group_sizes, recorded, routed, routing_of, shares


def test_no_token_takes_an_expert_twice_and_all_are_in_range() -> None:
    for routing in ("", "zipf:1.5", recorded([9, 0, 4, 4, 1, 0, 0, 1])):
        ids = draw_ids(routing, 8, 500, 4, seed=1)
        assert ids.min() >= 0
        assert ids.max() < 8
        assert (np.diff(np.sort(ids, axis=1), axis=1) > 0).all()


def test_shares_are_what_the_names_say() -> None:
    assert shares("uniform", 4).tolist() == [0.25] * 4
    assert shares("zipf:1", 3) == pytest.approx(np.array([6, 3, 2]) / 11)
    # Two digits hold a square root: within 1 / 255 of the largest one's, upwards.
    assert shares(recorded([1, 100, 25]), 3) == pytest.approx(np.array([100, 25, 1]) / 126, rel=0.1)


def test_draws_follow_the_shares() -> None:
    """4000 draws of one expert each: a count is within 5 standard deviations of its share."""
    counts = np.sort(np.bincount(draw_ids("zipf:1", 4, 4000, 1, seed=3).ravel(), minlength=4))[::-1]
    want = 4000 * shares("zipf:1", 4)
    assert (np.abs(counts - want) < 5 * np.sqrt(want)).all()


def test_groups_of_many_tokens_have_the_mean_of_drawn_ones() -> None:
    """Binomial groups against 8 draws of 300 tokens: means within 5 standard deviations of a mean of 8."""
    binomial = np.array(group_sizes("zipf:1", 6, 2, 300)).mean(axis=0)
    drawn = np.sort([np.bincount(draw_ids("zipf:1", 6, 300, 2, s).ravel(), minlength=6) for s in range(8)], axis=1)
    assert np.abs(np.sort(binomial) - drawn.mean(axis=0)).max() < 5 * np.sqrt(300 / 4 / 8)
    assert sum(group_sizes("", 8, 2, 4096)[0]) == pytest.approx(2 * 4096, rel=0.05)


def test_row_tiles_are_an_expectation_over_groups_not_of_the_mean() -> None:
    """32 tokens by one of 4 experts: groups of 8 in the mean, whose tiles of 8 would be 4; real groups make more."""
    problem = Problem("Q4_K", 64, 256, 32, experts=4, top_k=1)
    sizes = np.array(group_sizes("", 4, 1, 32))
    assert (sizes.sum(axis=1) == 32).all()
    tiles, touched = expected_tiles(problem, 8)
    assert tiles == pytest.approx((-(-sizes // 8)).sum(axis=1).mean())
    assert tiles > 4
    assert touched == pytest.approx((sizes > 0).sum(axis=1).mean())
    assert expected_tiles(problem, 8, tail=2)[0] < tiles


@pytest.mark.parametrize("text", ["zipf:", "zipf:-1", "zipf:nan", "recorded:00", "recorded:zz", "skewed"])
def test_unknown_routings_are_refused(text: str) -> None:
    with pytest.raises(UnusableInput):
        shares(routing_of(text), 8)


def test_a_recording_comes_from_a_file_of_counts(tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    path.write_text(json.dumps([3, 0, 12, 1]))
    assert shares(routing_of(str(path)), 4)[0] == pytest.approx(12 / 16, rel=0.1)
    path.write_text("{}")
    with pytest.raises(UnusableInput, match="not a list"):
        routing_of(str(path))


def test_a_models_experts_are_told_apart_by_routing_and_by_what_they_sum() -> None:
    workload = from_shapes("qwen3-30b-a3b")
    up, down = (next(p for p in workload.problems(512) if p.summed is summed and p.grouped) for summed in (False, True))
    assert (up.n, up.k, up.x_rows, up.y_rows) == (768, 2048, 512, 4096)
    assert (down.n, down.k, down.x_rows, down.y_rows) == (2048, 768, 4096, 512)
    skewed = next(p for p in routed(workload, "zipf:1").problems(512) if p.grouped)
    assert Key.of(skewed, "layout") != Key.of(up, "layout")
    assert Key.of(skewed, "layout").problem(512).routing == "zipf:1"
    with pytest.raises(UnusableInput, match="no experts"):
        routed(from_shapes("llama-8b"), "uniform")
