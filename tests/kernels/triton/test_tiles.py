"""Rules, space, stock and price of the Triton kernels, on paper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from warptile import devices, formats, kernels
from warptile.contracts import GroupedKernel, Limits, Problem, Tile
from warptile.kernels.triton.gemm.space import COLUMN_TILES
from warptile.kernels.triton.gemm.tile import GemmTile

Q4_K = Problem("Q4_K", 4096, 14336, 128, "fp16", "fp16")


@pytest.fixture(scope="module")
def h200() -> Limits:
    return devices.by_name("h200", "cuda")


def broken(tile: Tile, problem: Problem, limits: Limits) -> list[str]:
    return [b.rule for b in kernels.by_name(tile.kernel).broken_rules(tile, problem, limits)]


def test_every_column_tile_is_in_the_space(h200: Limits) -> None:
    kernel = kernels.by_name("triton.gemm")
    seen = {t.tile_m for m in (1, 8, 32, 128, 512) for t in kernel.space(Q4_K.at(m), h200)}  # type: ignore[attr-defined]
    assert seen >= set(COLUMN_TILES)


@pytest.mark.parametrize(
    ("m", "column"), [(1, 8), (8, 8), (9, 16), (17, 32), (33, 64), (65, 128), (129, 128), (512, 128)]
)
def test_stock_is_the_first_column_tile_with_the_fewest_tiles(h200: Limits, m: int, column: int) -> None:
    """Fewest column tiles, the smaller of equals: 129 tokens take two tiles of 128; none smaller takes two."""
    tile = kernels.by_name("triton.gemm").stock(Q4_K.at(m), h200)
    assert isinstance(tile, GemmTile)
    assert tile.tile_m == column


def test_stock_shrinks_where_shared_memory_is_small() -> None:
    """An RTX 4070 holds 101376 B a program: the widest column tile still fits there, with fewer stages."""
    limits = devices.by_name("rtx-4070", "cuda")
    tile = kernels.by_name("triton.gemm").stock(Q4_K, limits)
    assert isinstance(tile, GemmTile)
    assert not broken(tile, Q4_K, limits)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"tile_k": 64}, "tile_k is the step of the weights' arrangement"),
        ({"tile_m": 24}, "tile_m is a power of two"),
        ({"split_k": 128}, "split_k <= k / tile_k"),
        ({"operand": "fp8"}, "operand is one of fp16, bf16, tf32, ieee"),
        ({"decode": "fast"}, "decode is one of half, plain"),
        ({"stages": 9}, "shared bytes fit a program"),
        ({"warps": 64}, "warps * subgroup <= workgroup limit"),
    ],
)
def test_a_broken_rule_is_named(h200: Limits, changed: dict[str, int | str], rule: str) -> None:
    fields: dict[str, int | str] = {"tile_n": 64, "tile_m": 128, "tile_k": 128, **changed}
    assert broken(GemmTile(**fields), Q4_K, h200) == [rule]  # type: ignore[arg-type]


def test_rules_of_the_problem(h200: Limits) -> None:
    tile = GemmTile(64, 16, 128)
    assert broken(tile, Problem("Q4_K", 64, 128, 1, "fp16", "fp16"), h200) == ["k is whole blocks of the format"]
    assert broken(tile, Problem("Q4_K", 64, 256, 1, "bf16", "bf16"), h200) == ["fp16 holds the range of x"]
    assert broken(tile, Q4_K, devices.by_name("h200", "vulkan")) == ["the device takes weights in quads"]


def test_shared_bytes_are_the_compilers(h200: Limits) -> None:
    """What Triton 3.6 allocates for sm_90 for these tiles (its metadata), to the byte."""
    seen = {
        ("Q4_K", "tile_n=64,tile_m=16,tile_k=128,split_k=4,stages=4", "fp16"): 31744,
        ("Q6_K", "tile_n=64,tile_m=128,tile_k=128,operand=bf16,stages=3", "bf16"): 113664,
        ("PTQ1_0", "tile_n=64,tile_m=128,tile_k=128,operand=bf16,stages=3", "bf16"): 103424,
        ("TQ1_0", "tile_n=64,tile_m=16,tile_k=256,split_k=4,stages=4", "fp16"): 48128,
        ("Q4_K", "tile_n=64,tile_m=128,tile_k=128,stages=2,operand=tf32", "fp32"): 152576,
    }
    for (name, text, dtype), shared in seen.items():
        kernel, tile = kernels.parse_tile(f"triton.gemm:{text}")
        assert kernel.price(tile, Problem(name, 4096, 14336, 64, dtype, dtype), h200).shared_bytes == shared


@pytest.mark.parametrize("name", list(formats.all_formats()))
def test_every_format_has_a_valid_tile_of_every_kernel(h200: Limits, name: str) -> None:
    dense = Problem(name, 4096, 4096, 8, "fp16", "fp16")
    grouped = Problem(name, 4096, 4096, 8, "fp16", "fp16", experts=8, top_k=2)
    for kernel in kernels.for_runtime("cuda"):
        problem = grouped if isinstance(kernel, GroupedKernel) else dense
        if kernel.name == "triton.gemv_trits":
            if name != "PTQ1_0":
                continue
            problem = replace(dense, m=2)
        assert any(not kernel.broken_rules(t, problem, h200) for t in kernel.space(problem, h200)), kernel.name


WHOLE, RESTING = "split_k=1,programs=128", "split_k=0,programs=132,rest=1"


@pytest.mark.parametrize(
    ("name", "dtype", "n", "k", "m", "fields", "ratio"),
    [
        (
            "Q3_K",
            "fp16",
            4096,
            14336,
            4096,
            f"tile_m=256,stages=3,group_m=16,turn=2,hold=0,free=1,{RESTING}",
            729.9 / 661.7,
        ),
        ("Q6_K", "fp16", 5120, 17408, 2048, f"tile_m=256,stages=2,turn=1,hold=1,free=1,{RESTING}", 616.1 / 556.3),
        ("IQ4_XS", "fp16", 4096, 14336, 2048, f"tile_m=256,stages=3,turn=2,hold=0,free=1,{WHOLE}", 382.6 / 373.9),
        ("Q3_K", "fp16", 4096, 14336, 2048, f"tile_m=256,stages=3,turn=2,hold=0,free=1,{WHOLE}", 314.0 / 348.4),
        ("Q4_K", "bf16", 4096, 14336, 2048, f"tile_m=256,stages=3,turn=1,hold=1,free=1,{WHOLE}", 299.6 / 336.4),
    ],
)
def test_a_tile_is_dearer_than_dequantizing_where_an_h200_found_it_slower(
    h200: Limits, name: str, dtype: str, n: int, k: int, m: int, fields: str, ratio: float
) -> None:
    """Untuned, the cheaper is served. ratio: the tile's measured time over dequantizing and the dense library's, of a
    run that prices were fitted on (docs/measurements.md)."""
    problem = Problem(name, n, k, m, dtype, dtype)
    seconds = []
    for text in (f"triton.gemm_wgmma:tile_k=128,early=1,{fields}", "triton.dequantize:tile_n=16,warps=4,steps=1"):
        kernel, tile = kernels.parse_tile(text)
        assert not kernel.broken_rules(tile, problem, h200)
        seconds.append(kernel.price(tile, problem, h200).seconds)
    assert (seconds[0] > seconds[1]) == (ratio > 1), seconds


def test_prices_prefer_splitting_k_for_few_tokens_and_not_for_many(h200: Limits) -> None:
    from warptile.search import rank

    few = rank(Q4_K.at(16), h200, [kernels.by_name("triton.gemm")])[0].tile
    many = rank(Q4_K.at(2048), h200, [kernels.by_name("triton.gemm")])[0].tile
    assert isinstance(few, GemmTile)
    assert isinstance(many, GemmTile)
    assert few.split_k > 1
    assert many.split_k == 1
    assert many.tile_m >= 64
