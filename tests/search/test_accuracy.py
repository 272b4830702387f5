"""How well prices ranked what was measured, from a journal's entries."""

from __future__ import annotations

from typing import Any

import pytest

from warptile.search.accuracy import accuracies, rank_correlation

CARD = {"device": "A card", "runtime": "fake", "driver": "1", "compiler": "1"}


def screening(run: str, papers: list[float], corrected: list[float | None], seconds: list[float | None]) -> Any:
    arms = [
        {
            "tile": f"fake.tile:side={i}",
            "seconds": took,
            "predicted": {"seconds": paper},
            "corrected": None if said is None else {"seconds": said, "deviation": 0.1},
        }
        for i, (paper, said, took) in enumerate(zip(papers, corrected, seconds, strict=True))
    ]
    problem = {"format": "Q4_K", "n": 64, "k": 64, "m": 1, "count": 1}
    return {"kind": "race", "stage": "screen", "run": run, "identity": CARD, "problem": problem, "arms": arms}


def test_each_price_is_ranked_against_the_measurements_it_preceded() -> None:
    """Seven tiles: the paper has them upside down, so that its seventh is the fastest; the corrected price is right."""
    seconds: list[float | None] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    paper = [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    again = screening("one", paper[:1], [50.0], [1.0])  # knows the answer: the first expectation stands
    ended = {
        "kind": "run",
        "event": "end",
        "identity": CARD,
        "searched": [{"considered": 100, "refused": 60, "screened": 7, "proved": 2}],
    }
    (found,) = accuracies([screening("one", paper, [s and s / 2 for s in seconds], seconds), again, ended])
    assert (found.device, found.runtime, found.tiles) == ("A card", "fake", 7)
    assert found.paper is not None
    assert found.corrected is not None
    assert found.paper.correlation[0] == pytest.approx(-1)
    assert found.corrected.correlation[0] == pytest.approx(1)
    assert (found.paper.top, found.corrected.top, found.paper.searches) == (0, 1, 1)
    assert (found.considered, found.refused, found.screened, found.proved) == (100, 60, 7, 2)
    assert found.pruned == pytest.approx(0.93)


def test_few_tiles_say_nothing_and_unreadable_entries_are_passed_over() -> None:
    few = screening("one", [1.0, 2.0], [None, None], [1.0, None])
    entries = [few, {"kind": "race", "stage": "screen", "identity": CARD}, {"kind": "run", "identity": None}, {}]
    (found,) = accuracies(entries)
    assert (found.tiles, found.paper, found.corrected, found.pruned) == (1, None, None, None)


def test_equal_prices_have_no_rank() -> None:
    import numpy as np

    assert np.isnan(rank_correlation(np.ones(5), np.arange(5.0)))
