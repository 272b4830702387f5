import pytest

from warptile.record import joined


def one(**seconds: float) -> dict[str, tuple[float, int]]:
    return {tile: (value, 1) for tile, value in seconds.items()}


def test_a_slower_clock_of_a_later_comparison_does_not_make_its_tiles_slower() -> None:
    scale = joined([one(a=1.0, b=2.0), one(a=1.5, c=1.2), one(b=8.0, c=1.6, d=4.0)])
    assert scale == pytest.approx({"a": 1.0, "b": 2.0, "c": 0.8, "d": 4.0 * (0.25 + 0.5) / 2})


def test_a_cold_single_run_does_not_make_a_whole_screening_faster() -> None:
    screening = {"a": (4224.0, 1), "b": (108.8, 6), "c": (92.0, 6)}
    scale = joined([{"a": (105.8, 12), "b": (107.3, 12)}, screening])
    assert scale["c"] == pytest.approx(92.0 * 107.3 / 108.8)


def test_a_comparison_waits_for_the_one_that_links_it() -> None:
    assert joined([one(a=1.0), one(y=4.0, z=2.0), one(a=2.0, y=2.0)]) == {"a": 1.0, "y": 1.0, "z": 0.5}


def test_a_comparison_that_shares_no_tile_cannot_be_placed() -> None:
    assert joined([one(a=1.0), one(z=0.1)]) == {"a": 1.0}
    assert joined([]) == {}
