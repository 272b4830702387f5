"""A price must order tiles as hardware did, before anything is compiled."""

from __future__ import annotations

import pytest

from warptile import devices, kernels
from warptile.contracts import Problem
from warptile.kernels.vulkan.mul_mm.tile import MulMmTile

KERNEL = kernels.by_name("mul_mm")
PROBLEM = Problem("Q4_K", 2048, 2048, 128)

# accumulators, shared bytes, threads resident (all by shared memory), tokens/s measured on a Mali-G610 at 128 tokens.
MALI = {
    "128,128,128,32,32,64,2,4,2,1,16": (128, 17408, 128, 5.8),
    "128,64,64,32,32,16,2,2,2,1,16": (32, 8704, 384, 9.7),
    "128,64,32,32,16,16,2,2,2,1,16": (16, 6528, 640, 23.4),
    "256,64,64,32,16,16,2,2,2,1,16": (16, 8704, 768, 25.8),
}


@pytest.mark.parametrize("tile", MALI)
def test_mali_rows(tile: str) -> None:
    accumulators, shared, threads, _ = MALI[tile]
    price = KERNEL.price(MulMmTile.parse(tile), PROBLEM, devices.by_name("mali-g610"))
    assert (price.accumulators, price.shared_bytes) == (accumulators, shared)
    assert (price.resident_threads, price.limited_by) == (threads, "shared memory")
    assert price.spills == (accumulators > 16)
    assert price.registers == 64


def test_order_on_paper_is_the_order_measured() -> None:
    limits = devices.by_name("mali-g610")
    seconds = [KERNEL.price(MulMmTile.parse(tile), PROBLEM, limits).seconds for tile in MALI]
    assert seconds == sorted(seconds, reverse=True)
    assert [row[3] for row in MALI.values()] == sorted(row[3] for row in MALI.values())


def test_workgroups_and_padding() -> None:
    tile = MulMmTile.parse("128,64,64,32,32,32,2,4,2,1,32")
    price = KERNEL.price(tile, Problem("Q4_1", 65, 32, 65), devices.by_name("rtx-3060"))
    assert price.workgroups == 4
    assert any("outside y" in note for note in price.notes)


def test_intensity_is_flop_over_bytes_requested() -> None:
    # One workgroup: (64 rows * 5 bits / 8 + 64 tokens * 4 bytes) * 64 along k, and 64 * 64 outputs of 4 bytes.
    tile = MulMmTile.parse("128,64,64,32,32,32,2,4,2,1,32")
    price = KERNEL.price(tile, Problem("Q4_1", 64, 64, 64), devices.by_name("rtx-3060"))
    assert price.intensity == pytest.approx(2 * 64**3 / ((64 * 5 / 8 + 64 * 4) * 64 + 64 * 64 * 4))


def test_a_tile_that_wastes_its_area_costs_more() -> None:
    limits = devices.by_name("lavapipe")
    small = MulMmTile.parse("32,32,32,32,8,32,2,2,2,1,8")
    large = MulMmTile.parse("128,128,128,32,16,64,2,4,4,1,8")
    one = PROBLEM.at(1)
    assert KERNEL.price(large, one, limits).seconds > KERNEL.price(small, one, limits).seconds


@pytest.mark.parametrize("name", devices.names())
def test_every_valid_tile_has_a_finite_price(name: str) -> None:
    limits = devices.by_name(name)
    for tile in list(KERNEL.space(PROBLEM, limits))[::7]:
        if not KERNEL.broken_rules(tile, PROBLEM, limits):
            price = KERNEL.price(tile, PROBLEM, limits)
            assert 0 < price.seconds < 3600
            assert 0 < price.fill <= 1
            assert price.resident_threads >= tile.fields()["block_size"]
