import pytest

from warptile.record import joined


def test_a_slower_clock_of_a_later_comparison_does_not_make_its_tiles_slower() -> None:
    scale = joined([{"a": 1.0, "b": 2.0}, {"a": 1.5, "c": 1.2}, {"b": 8.0, "c": 1.6, "d": 4.0}])
    assert scale == pytest.approx({"a": 1.0, "b": 2.0, "c": 0.8, "d": 4.0 * (0.25 + 0.5) / 2})


def test_a_comparison_that_shares_no_tile_cannot_be_placed() -> None:
    assert joined([{"a": 1.0}, {"z": 0.1}]) == {"a": 1.0}
    assert joined([]) == {}
