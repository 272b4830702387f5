"""Rules, spaces, stock and price of the direct kernels, without a device."""

from __future__ import annotations

import dataclasses

import pytest

from warptile import kernels
from warptile.contracts import Limits, Problem
from warptile.kernels.vulkan.mul_mat_vec import MulMatVecTile
from warptile.kernels.vulkan.mul_mm_direct import MulMmDirectTile

SOFTWARE = Limits(
    name="software",
    runtime="vulkan",
    vendor="mesa",
    kind="software",
    subgroup=8,
    subgroup_sizes=(8,),
    shared_bytes=32768,
    shared_bytes_per_unit=32768,
    max_workgroup=1024,
    max_grid=(65535, 65535, 65535),
    max_buffer_bytes=1 << 27,
    units=2,
    features=frozenset({"subgroup_shuffle", "int64"}),
)
GPU = dataclasses.replace(
    SOFTWARE, name="gpu", kind="gpu", subgroup=32, subgroup_sizes=(32,), units=28, threads_per_unit=1536,
    registers_per_unit=65536, max_registers_per_thread=255, read_gb_per_s=360.0, fp32_tflops=12.7,
)  # fmt: skip
PREFILL = Problem("Q4_1", 1536, 576, 128)
DECODE = Problem("Q4_1", 576, 1536, 1)
DIRECT = kernels.by_name("mul_mm_direct")
VEC = kernels.by_name("mul_mat_vec")
GOOD = MulMmDirectTile(8, 4, 8, 4, "shuffle64", "n")
GOOD_VEC = MulMatVecTile(8, 2, 4, 1, 4, "shuffle")


@pytest.mark.parametrize(
    ("change", "limits", "rule"),
    [
        ({"lanes": 0}, SOFTWARE, "lanes along n >= 1"),
        ({"thread_n": 16, "thread_m": 32}, SOFTWARE, "accumulators"),
        ({"load_n": 3}, SOFTWARE, "load_n is 1, 2 or 4"),
        ({"thread_n": 2}, SOFTWARE, "thread_n % load_n = 0"),
        ({"x_access": "telepathy"}, SOFTWARE, "x_access is one of"),
        ({"first": "k"}, SOFTWARE, "first is n or m"),
        ({"lanes": 12}, SOFTWARE, "whole subgroups along n"),
        ({"lanes": 2048}, SOFTWARE, "threads a workgroup"),
        ({}, dataclasses.replace(SOFTWARE, features=frozenset({"subgroup_shuffle"})), "needs int64"),
        ({}, dataclasses.replace(SOFTWARE, features=frozenset({"int64"})), "needs subgroup_shuffle"),
        ({}, dataclasses.replace(SOFTWARE, subgroup=4), "needs a subgroup of 8 lanes"),
        ({}, dataclasses.replace(SOFTWARE, max_grid=(4, 65535, 65535)), "workgroups a dimension"),
    ],
)
def test_each_rule_speaks_with_numbers(change: dict[str, int | str], limits: Limits, rule: str) -> None:
    assert DIRECT.broken_rules(GOOD, PREFILL, SOFTWARE) == []
    broken = DIRECT.broken_rules(dataclasses.replace(GOOD, **change), PREFILL, limits)
    assert any(rule in found.rule for found in broken), broken
    assert all(found.numbers for found in broken)


def test_rows_that_do_not_divide_by_the_load_are_refused() -> None:
    assert DIRECT.broken_rules(GOOD, Problem("Q4_1", 1534, 576, 128), SOFTWARE)[0].rule == "n % load_n = 0"


@pytest.mark.parametrize(
    ("change", "rule"),
    [({"experts": 4, "top_k": 2}, "experts = 1"), ({"x_dtype": "fp16"}, "fp32"), ({"y_dtype": "fp16"}, "fp32")],
)
def test_a_matmul_the_kernels_do_not_compute_is_refused(change: dict[str, int | str], rule: str) -> None:
    for kernel, tile, problem in ((DIRECT, GOOD, PREFILL), (VEC, GOOD_VEC, DECODE)):
        broken = kernel.broken_rules(tile, dataclasses.replace(problem, **change), SOFTWARE)
        assert [rule in found.rule for found in broken] == [True]


def test_shared_memory_of_the_split_is_bounded() -> None:
    tile = dataclasses.replace(GOOD_VEC, lanes_n=128, split_k=8, thread_n=8, columns=8, x_access="direct")
    assert tile.shared_bytes == 4 * 7 * 64 * 128
    broken = VEC.broken_rules(tile, DECODE, SOFTWARE)
    assert [found.well_formed for found in broken] == [True]
    assert VEC.broken_rules(dataclasses.replace(GOOD_VEC, split_k=0), DECODE, SOFTWARE)


@pytest.mark.parametrize("limits", [SOFTWARE, GPU], ids=["software", "gpu"])
@pytest.mark.parametrize("problem", [PREFILL, DECODE, Problem("Q6_K", 1001, 512, 5)])
def test_spaces_hold_enough_valid_tiles_and_every_one_is_priced(limits: Limits, problem: Problem) -> None:
    for kernel in (DIRECT, VEC):
        tiles = list(kernel.space(problem, limits))
        valid = [tile for tile in tiles if not kernel.broken_rules(tile, problem, limits)]
        assert len(tiles) == len(set(tiles))
        assert 12 <= len(valid) <= 200
        for tile in valid:
            price = kernel.price(tile, problem, limits)
            assert price.seconds > 0
            assert 0 < price.fill <= 1
            assert price.workgroups >= 1
            assert kernel.tile_type.parse(tile.text()) == tile


@pytest.mark.parametrize(
    ("name", "vendor", "rows", "threads"),
    [("Q4_1", "nvidia", 2, 32), ("Q4_1", "intel", 4, 32), ("Q8_0", "nvidia", 1, 32), ("Q6_K", "nvidia", 2, 32)],
)
def test_stock_is_llama_cpp_s_choice(name: str, vendor: str, rows: int, threads: int) -> None:
    limits = dataclasses.replace(GPU, vendor=vendor)
    problem = Problem(name, 4096, 4096, 3)
    tile = VEC.stock(problem, limits)
    assert tile == MulMatVecTile(1, threads, rows, 3, 1, "direct")
    assert VEC.broken_rules(tile, problem, limits) == []
    assert VEC.stock(problem.at(9), limits) is None
    assert VEC.stock(Problem("Q4_K", 4096, 4096, 1), SOFTWARE).fields()["split_k"] == 16


def test_the_price_knows_what_loads_cost_on_a_software_device() -> None:
    def seconds(**change: int | str) -> float:
        return DIRECT.price(dataclasses.replace(GOOD, **change), PREFILL, SOFTWARE).seconds

    # Measured on Mesa 22.3, two cores: 4x8 direct 7 to 14 GFLOP/s, shuffled 30 to 49, 64-bit 40 to 55, 8x32 75.
    assert seconds(x_access="direct") > 2 * seconds(x_access="shuffle") > 2 * seconds(x_access="shuffle64")
    assert seconds(load_n=1) > seconds(load_n=2) > seconds(load_n=4)
    assert seconds() > seconds(thread_n=8, thread_m=32)
    assert seconds(lanes=1024) > seconds(lanes=8)


def test_boundaries_are_the_tile_s_own_steps() -> None:
    assert DIRECT.boundaries(GOOD) == (8, 32, 32)
    assert VEC.boundaries(GOOD_VEC) == (1, 32, 64)
    assert VEC.arithmetic(GOOD_VEC, DECODE).depth == 768
    assert VEC.arithmetic(GOOD_VEC, DECODE).parts == 2
