"""Invalid tiles must be refused on paper: llama.cpp checks none of this and published wrong results because of it."""

from __future__ import annotations

import dataclasses

import pytest

from warptile import devices, kernels
from warptile.contracts import Limits, Problem, UnusableInput
from warptile.kernels.vulkan.mul_mm.stock import llama_cpp_tiles
from warptile.kernels.vulkan.mul_mm.tile import MulMmTile

PROBLEM = Problem("Q4_K", 4096, 4096, 512)
KERNEL = kernels.by_name("mul_mm")
VALID = MulMmTile(128, 64, 64, 32, 32, 32, 2, 4, 2, 1, 32)
CARD = devices.by_name("rtx-3060")


def of_subgroup(size: int) -> Limits:
    return dataclasses.replace(CARD, subgroup=size, subgroup_sizes=(size,), shared_bytes=65536)


def rules_broken(tile: MulMmTile, limits: Limits = CARD, problem: Problem = PROBLEM) -> list[str]:
    return [broken.rule for broken in KERNEL.broken_rules(tile, problem, limits)]


def test_llama_cpp_tuple_reads_in_its_order() -> None:
    tile = MulMmTile.parse("128,128,64,32,32,16,2,4,8,1,16")
    assert (tile.block_size, tile.tile_n, tile.tile_m, tile.tile_k) == (128, 128, 64, 32)
    assert (tile.warp_n, tile.warp_m, tile.warp_iterations_n) == (32, 16, 2)
    assert (tile.thread_n, tile.thread_m, tile.thread_k, tile.subgroup) == (4, 8, 1, 16)
    assert (tile.shared, tile.accumulator) == ("fp16", "fp32")
    assert MulMmTile.parse(tile.text()) == tile


def test_twelve_numbers_are_too_many() -> None:
    with pytest.raises(UnusableInput, match="11 fields"):
        MulMmTile.parse("128,128,64,32,32,16,2,4,8,1,16,2")


def test_small_tile_at_subgroup_16_is_refused() -> None:
    small = llama_cpp_tiles(of_subgroup(16))["small"]
    assert rules_broken(small, of_subgroup(16)) == ["(tile_n / warp_n) * (tile_m / warp_m) = block_size / subgroup"]


def test_warp_wider_than_the_tile_at_subgroup_128_is_refused() -> None:
    # WARP not clamped: the medium tile's WM is the subgroup.
    medium = MulMmTile(128, 64, 64, 32, 128, 32, 2, 4, 2, 1, 128)
    found = KERNEL.broken_rules(medium, PROBLEM, of_subgroup(128))
    assert "warp_n <= tile_n" in [b.rule for b in found]
    assert next(b for b in found if b.rule == "warp_n <= tile_n").numbers == "128 > 64"


@pytest.mark.parametrize("subgroup", [8, 32, 64])
@pytest.mark.parametrize("size", ["small", "medium", "large"])
def test_desktop_tuples_pass(subgroup: int, size: str) -> None:
    limits = of_subgroup(subgroup)
    assert rules_broken(llama_cpp_tiles(limits)[size], limits) == []


@pytest.mark.parametrize(
    ("change", "rule", "numbers"),
    [
        ({"thread_n": 0}, "every number of a tile is at least 1", "thread_n 0"),
        ({"tile_k": 48}, "tile_k is a multiple of 32", "tile_k 48"),
        ({"thread_k": 16}, "thread_k = 1: sums are scalar", "thread_k 16"),
        ({"block_size": 130}, "subgroup divides block_size", "block_size 130, subgroup 32"),
        ({"warp_n": 128}, "warp_n <= tile_n", "128 > 64"),
        ({"warp_m": 128}, "warp_m <= tile_m", "128 > 64"),
        ({"tile_n": 80}, "warp_n divides tile_n", "tile_n 80, warp_n 32"),
        ({"tile_m": 80}, "warp_m divides tile_m", "tile_m 80, warp_m 32"),
        (
            {"block_size": 256},
            "(tile_n / warp_n) * (tile_m / warp_m) = block_size / subgroup",
            "(64 / 32) * (64 / 32) = 4, 256 / 32 = 8",
        ),
        (
            {"thread_m": 16},
            "warp_iterations_m = warp_n * warp_m / (subgroup * thread_n * thread_m * warp_iterations_n) is whole",
            "1024 / 4096 = 0.25",
        ),
        (
            {"thread_n": 64, "thread_m": 1, "warp_iterations_n": 1, "warp_n": 32, "warp_m": 64, "tile_m": 128},
            "warp_iterations_n * thread_n divides warp_n",
            "warp_n 32, 1 * 64 = 64",
        ),
        (
            {
                "thread_n": 1,
                "thread_m": 32,
                "warp_iterations_n": 1,
                "warp_m": 16,
                "warp_n": 64,
                "tile_n": 128,
                "tile_m": 32,
            },
            "warp_iterations_m * thread_m divides warp_m",
            "warp_m 16, 1 * 32 = 32",
        ),
        ({"shared": "bf16"}, "shared is fp16 or fp32", "shared bf16"),
        ({"accumulator": "fp16"}, "accumulator is fp32", "accumulator fp16"),
    ],
)
def test_each_rule_speaks_with_its_numbers(change: dict[str, int | str], rule: str, numbers: str) -> None:
    assert rules_broken(VALID) == []
    broken = KERNEL.broken_rules(dataclasses.replace(VALID, **change), PROBLEM, CARD)  # type: ignore[arg-type]
    assert (rule, numbers) in [(b.rule, b.numbers) for b in broken]
    assert not next(b for b in broken if b.rule == rule).well_formed


@pytest.mark.parametrize(
    ("change", "rule", "numbers"),
    [
        ({"subgroup_sizes": (64,)}, "subgroup is one of the device's sizes", "32; the device has 64"),
        ({"max_workgroup": 64}, "block_size <= largest workgroup", "128 > 64"),
        ({"shared_bytes": 8192}, "shared bytes <= shared bytes of a workgroup", "8704 > 8192"),
        ({"features": frozenset({"int8"})}, "shared fp16 needs feature fp16", "the device has int8"),
        ({"max_grid": (63, 65535, 1)}, "grid x <= largest grid x", "64 > 63"),
        ({"max_grid": (65535, 7, 1)}, "grid y <= largest grid y", "8 > 7"),
    ],
)
def test_a_tile_too_large_for_the_device_is_well_formed(change: dict[str, object], rule: str, numbers: str) -> None:
    limits = dataclasses.replace(CARD, **change)  # type: ignore[arg-type]
    broken = KERNEL.broken_rules(VALID, PROBLEM, limits)
    assert [(b.rule, b.numbers, b.well_formed) for b in broken] == [(rule, numbers, True)]


@pytest.mark.parametrize(
    ("problem", "rule"),
    [
        (dataclasses.replace(PROBLEM, k=4080), "k is a multiple of 32"),
        (dataclasses.replace(PROBLEM, experts=8), "experts = 1: one dense matmul"),
        (dataclasses.replace(PROBLEM, x_dtype="fp16"), "x and y are fp32"),
    ],
)
def test_problems_it_does_not_compute_are_refused(problem: Problem, rule: str) -> None:
    assert rules_broken(VALID, CARD, problem) == [rule]


def test_a_valid_tile_covers_its_block_exactly_once() -> None:
    """The index arithmetic of the shader, in Python: every (row, token) of the block belongs to one thread."""
    for name in devices.names():
        limits = devices.by_name(name)
        for tile in list(KERNEL.space(PROBLEM, limits))[::29]:
            assert isinstance(tile, MulMmTile)
            if KERNEL.broken_rules(tile, PROBLEM, limits):
                continue
            seen: set[tuple[int, int]] = set()
            pass_n, pass_m = tile.warp_n // tile.warp_iterations_n, tile.warp_m // tile.warp_iterations_m
            lanes_n, warps_n = pass_n // tile.thread_n, tile.tile_n // tile.warp_n
            for thread in range(tile.block_size):
                warp, lane = divmod(thread, tile.subgroup)
                row = (warp % warps_n) * tile.warp_n + (lane % lanes_n) * tile.thread_n
                token = (warp // warps_n) * tile.warp_m + (lane // lanes_n) * tile.thread_m
                mine = {
                    (row + a * pass_n + b, token + c * pass_m + d)
                    for a in range(tile.warp_iterations_n)
                    for b in range(tile.thread_n)
                    for c in range(tile.warp_iterations_m)
                    for d in range(tile.thread_m)
                }
                assert len(mine) == tile.accumulators
                assert seen.isdisjoint(mine)
                seen |= mine
            assert seen == {(row, token) for row in range(tile.tile_n) for token in range(tile.tile_m)}
