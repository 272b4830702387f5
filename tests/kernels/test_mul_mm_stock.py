"""The incumbent must be what llama.cpp runs, and always a tile that computes the right thing."""

from __future__ import annotations

import dataclasses

import pytest

from warptile import devices, kernels
from warptile.contracts import Limits, Problem
from warptile.kernels.vulkan.mul_mm.stock import llama_cpp_tile
from warptile.kernels.vulkan.mul_mm.tile import MulMmTile

KERNEL = kernels.by_name("mul_mm")


def stock(limits: Limits, n: int, m: int) -> MulMmTile:
    tile = KERNEL.stock(Problem("Q4_1", n, 4096, m), limits)
    assert isinstance(tile, MulMmTile)
    return tile


@pytest.mark.parametrize(
    ("device", "n", "m", "numbers"),
    [
        ("lavapipe", 576, 16, (32, 32, 32, 32, 8, 32, 2, 2, 2, 1, 8)),
        ("lavapipe", 576, 64, (128, 64, 64, 32, 8, 32, 2, 4, 2, 1, 8)),
        ("lavapipe", 576, 128, (128, 128, 128, 32, 16, 64, 2, 4, 4, 1, 8)),
        ("lavapipe", 64, 128, (128, 64, 64, 32, 8, 32, 2, 4, 2, 1, 8)),
        ("lavapipe", 32, 128, (32, 32, 32, 32, 8, 32, 2, 2, 2, 1, 8)),
        ("rtx-4070", 4096, 512, (128, 128, 128, 32, 64, 64, 2, 4, 4, 1, 32)),
        ("rx-9060-xt", 4096, 512, (128, 64, 64, 32, 64, 32, 2, 4, 2, 1, 64)),
        ("mali-g610", 4096, 512, (128, 128, 128, 32, 32, 64, 2, 4, 4, 1, 16)),
        ("mali-g610", 4096, 64, (128, 64, 64, 32, 16, 32, 2, 4, 2, 1, 16)),
    ],
)
def test_static_table(device: str, n: int, m: int, numbers: tuple[int, ...]) -> None:
    assert stock(devices.by_name(device), n, m).numbers == numbers


def test_where_its_own_tuple_is_invalid_the_nearest_valid_one_is_taken() -> None:
    mali = devices.by_name("mali-g610")
    theirs = llama_cpp_tile(Problem("Q4_1", 4096, 4096, 16), mali)
    assert theirs.numbers == (32, 32, 32, 32, 32, 32, 2, 2, 2, 1, 16)
    assert KERNEL.broken_rules(theirs, Problem("Q4_1", 4096, 4096, 16), mali)
    assert stock(mali, 4096, 16).numbers == (32, 32, 32, 32, 16, 32, 2, 2, 2, 1, 16)


@pytest.mark.parametrize("subgroup", [1, 4, 8, 16, 32, 64, 128])
@pytest.mark.parametrize("shared", [16384, 32768, 65536])
@pytest.mark.parametrize("features", [frozenset(), frozenset({"fp16"})])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (32, 9), (576, 64), (49152, 2048)])
def test_always_valid(subgroup: int, shared: int, features: frozenset[str], n: int, m: int) -> None:
    limits = dataclasses.replace(
        devices.by_name("lavapipe"),
        subgroup=subgroup,
        subgroup_sizes=(subgroup,),
        shared_bytes=shared,
        features=features,
    )
    assert KERNEL.broken_rules(stock(limits, n, m), Problem("Q4_1", n, 4096, m), limits) == []


def test_large_tile_is_dropped_where_it_does_not_fit() -> None:
    no_fp16 = dataclasses.replace(devices.by_name("lavapipe"), features=frozenset())
    found = stock(no_fp16, 4096, 512)
    assert (found.tile_n, found.tile_m, found.shared) == (64, 64, "fp32")


def test_amd_gcn_medium_tile_is_brought_to_its_subgroup() -> None:
    gcn = dataclasses.replace(devices.by_name("rx-9060-xt"), subgroup=64, subgroup_sizes=(64,))
    found = stock(gcn, 4096, 512)
    assert (found.block_size, found.tile_n, found.tile_m, found.subgroup) == (256, 64, 64, 64)
