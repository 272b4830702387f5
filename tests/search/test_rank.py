"""The loop races what ranking puts first: the order must be complete, deterministic and free of invalid tiles."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from warptile import devices, kernels
from warptile.contracts import Limits, Problem, Tile
from warptile.kernels.vulkan.mul_mm.kernel import MulMm
from warptile.search import neighbours, rank, rank_all

PROBLEM = Problem("Q4_1", 576, 576, 128)
KERNEL = kernels.by_name("mul_mm")


class Backwards(MulMm):
    """The same space, last tile first and every tile twice."""

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        tiles = list(super().space(problem, limits))
        return iter([*reversed(tiles), *tiles])


@pytest.mark.parametrize("name", devices.names())
def test_a_few_hundred_valid_tiles_in_order(name: str) -> None:
    limits = devices.by_name(name)
    found = rank(PROBLEM, limits, [KERNEL])
    assert 50 <= len(found) <= 1500
    assert [c.price.seconds for c in found] == sorted(c.price.seconds for c in found)
    assert all(not KERNEL.broken_rules(c.tile, PROBLEM, limits) for c in found)


def test_order_does_not_depend_on_the_space_and_twins_count_once() -> None:
    limits = devices.by_name("lavapipe")
    straight, backwards = rank_all(PROBLEM, limits, [KERNEL]), rank_all(PROBLEM, limits, [Backwards()])
    assert straight == backwards
    assert len({c.tile for c in straight.candidates}) == len(straight.candidates)


def test_rejected_counts_add_up_and_name_the_rule() -> None:
    found = rank_all(PROBLEM, devices.by_name("mali-g610"), [KERNEL])
    assert len(found.candidates) + sum(found.rejected.values()) == found.considered
    assert ("vulkan.mul_mm", "shared bytes <= shared bytes of a workgroup") in found.rejected


def test_a_device_nothing_fits_has_no_candidates() -> None:
    tiny = dataclasses.replace(devices.by_name("lavapipe"), shared_bytes=64)
    found = rank_all(PROBLEM, tiny, [KERNEL])
    assert found.candidates == ()
    assert sum(found.rejected.values()) == found.considered > 0
    assert KERNEL.stock(PROBLEM, tiny) is None


@pytest.mark.parametrize("name", ["lavapipe", "rtx-4070"])
def test_neighbours_are_valid_near_and_other(name: str) -> None:
    limits = devices.by_name(name)
    tile = KERNEL.stock(PROBLEM, limits)
    assert tile is not None
    found = list(neighbours(KERNEL, tile, PROBLEM, limits))
    assert 5 <= len(found) == len(set(found))
    for other in found:
        changed = [key for key, value in other.fields().items() if value != tile.fields()[key]]
        assert 1 <= len(changed) <= 2
        assert not KERNEL.broken_rules(other, PROBLEM, limits)
    assert found == list(neighbours(KERNEL, tile, PROBLEM, limits))
