"""`vulkan.mul_mmq` on paper: rules by name, shared bytes to the byte, the price's order, llama.cpp's tiles."""

from __future__ import annotations

import dataclasses

import pytest

from warptile import devices, formats, kernels
from warptile.contracts import Problem, UnusableInput
from warptile.kernels.price_model import MMQ_WEIGHT_BYTES, mul_mmq_shared_bytes
from warptile.kernels.vulkan.mul_mmq.staging import shared_bytes
from warptile.kernels.vulkan.mul_mmq.stock import PACKED
from warptile.kernels.vulkan.mul_mmq.tile import MulMmqTile
from warptile.kernels.vulkan.mul_mmq.trit_loader import lanes, steps, word_stages
from warptile.layouts.trits import TritPlane

KERNEL = kernels.by_name("mul_mmq")
MALI = devices.by_name("mali-g610")
PROBLEM = Problem("Q4_K", n=11008, k=2048, m=128)
GOOD = MulMmqTile.parse("256,64,64,32,16,16,1,2,2,1,16,2")


def broken(problem: Problem = PROBLEM, limits: object = MALI, **changes: object) -> list[str]:
    tile = dataclasses.replace(GOOD, **changes)  # type: ignore[arg-type]
    return [b.text() for b in KERNEL.broken_rules(tile, problem, limits)]  # type: ignore[arg-type]


def test_the_twelfth_value_is_bk_step() -> None:
    assert GOOD.bk_step == 2
    assert MulMmqTile.parse("256,64,64,32,16,16,1,2,2,1,16").bk_step == 4
    assert MulMmqTile.parse(GOOD.text()) == GOOD
    source = KERNEL.source(GOOD, PROBLEM, MALI)
    assert (11, 2) in source.constants
    with pytest.raises(UnusableInput, match="13 values"):
        MulMmqTile.parse("256,64,64,32,16,16,1,2,2,1,16,2,9")


def test_bk_step_is_a_constant_of_its_own_pipeline() -> None:
    """Another BK_STEP is another binary of that tile alone: the same text, constant 11 changed, no other constant."""
    one, other = (KERNEL.source(dataclasses.replace(GOOD, bk_step=step), PROBLEM, MALI) for step in (2, 4))
    assert one.text == other.text
    assert set(one.constants) ^ set(other.constants) == {(11, 2), (11, 4)}
    mul_mm = kernels.by_name("mul_mm")
    tile = next(t for t in mul_mm.space(PROBLEM, MALI) if not mul_mm.broken_rules(t, PROBLEM, MALI))
    assert one.text != mul_mm.source(tile, PROBLEM, MALI).text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bk_step": 0}, "bk_step is at least 1 (bk_step 0)"),
        ({"tile_k": 64}, "tile_k = 32: bk_step counts chunks (tile_k 64)"),
        ({"warp_n": 128}, "warp_n <= tile_n (128 > 64)"),
        ({"dot": "fast"}, "dot is one of int_dot, plain (dot fast)"),
        ({"staged": "fp16"}, "staged is one of packed, int8 (staged fp16)"),
        ({"scales": "bf16"}, "scales is one of fp16, fp32 (scales bf16)"),
        ({"loader": "clever"}, "loader is one of chunk, uniform, divergent (loader clever)"),
        ({"loader": "uniform"}, "loader uniform unpacks base-3 blocks (Q4_K is b4.k6min.256)"),
        ({"bk_step": 16}, "shared bytes <= shared bytes of a workgroup (57344 > 32768)"),
        ({"thread_k": 2}, "thread_k = 1: sums are scalar (thread_k 2)"),
    ],
)
def test_a_broken_rule_is_named_with_its_numbers(changes: dict[str, object], words: str) -> None:
    assert words in broken(**changes)


def test_a_valid_tile_breaks_none() -> None:
    assert broken() == []


def test_integer_dots_are_refused_where_the_device_has_none_and_plain_ones_are_not() -> None:
    old = dataclasses.replace(MALI, features=frozenset({"fp16"}))
    assert broken(limits=old) == ["dot int_dot needs feature int_dot (the device has fp16)"]
    assert broken(limits=old, dot="plain") == []


def test_block_loaders_take_whole_blocks_and_stage_int8() -> None:
    ternary = Problem("PTQ1_0", 17408, 5120, 128)
    assert broken(ternary, loader="uniform", bk_step=2) == [
        "loader uniform stages int8 (staged packed)",
        "loader uniform takes whole blocks: bk_step is a multiple of 4 (bk_step 2)",
    ]
    assert broken(ternary, loader="divergent", staged="int8", bk_step=4) == []


def test_the_documents_loader_takes_twelve_steps_and_the_uniform_one_five() -> None:
    """Of eight threads a block, four and two take five steps each in their branches, one two, one none."""
    plane = formats.by_name("PTQ1_0").layout.codes
    assert isinstance(plane, TritPlane)
    assert lanes(plane) == 8
    assert [stage.loops for stage in word_stages(plane)] == [5, 5, 2]
    assert (steps(plane, "divergent"), steps(plane, "uniform")) == (12, 5)


@pytest.mark.parametrize("name", sorted(set(MMQ_WEIGHT_BYTES) - {"Q3_K"}))
@pytest.mark.parametrize("bk_step", [1, 2, 4])
def test_shared_bytes_are_llama_cpps_where_it_stages_as_we_do(name: str, bk_step: int) -> None:
    tile = dataclasses.replace(GOOD, bk_step=bk_step, staged="packed" if name in PACKED else "int8")
    assert shared_bytes(tile, name) == mul_mmq_shared_bytes(name, 64, 64, bk_step)


def test_q3_k_stages_its_three_bits_where_llama_cpp_stages_four() -> None:
    assert (
        mul_mmq_shared_bytes("Q3_K", 64, 0, 1) - shared_bytes(dataclasses.replace(GOOD, bk_step=1, tile_m=0), "Q3_K")
        == 4 * 64
    )


@pytest.mark.parametrize(
    ("tile", "bytes_", "threads"),
    [
        ("128,128,128,32,32,64,1,4,4,1,16,4", 28672, 128),
        ("128,64,64,32,16,32,1,2,2,1,16,4", 14336, 256),
        ("256,64,64,32,16,16,1,2,2,1,16,4", 14336, 512),
        ("256,64,64,32,16,16,1,2,2,1,16,2", 7168, 1024),
    ],
)
def test_residency_on_the_mali_is_the_documents(tile: str, bytes_: int, threads: int) -> None:
    price = KERNEL.price(MulMmqTile.parse(tile), PROBLEM, MALI)
    assert (price.shared_bytes, price.resident_threads) == (bytes_, threads)


def test_one_chunk_a_step_gains_no_threads_and_costs_twice_the_barriers() -> None:
    """2304 threads by shared memory, but the register file holds 1024: the document's sixth iteration loses."""
    two, one = GOOD, dataclasses.replace(GOOD, bk_step=1)
    better, worse = (KERNEL.price(t, PROBLEM, MALI) for t in (two, one))
    assert (one.tile_n, worse.shared_bytes) == (64, 3584)
    assert worse.resident_threads == better.resident_threads == 1024
    assert worse.limited_by == "registers"
    assert worse.seconds > better.seconds


def test_stock_is_llama_cpps_integer_table() -> None:
    found = KERNEL.stock(PROBLEM, MALI)
    assert isinstance(found, MulMmqTile)
    assert found.numbers == (128, 128, 128, 32, 32, 64, 1, 4, 4, 1, 16)
    assert (found.bk_step, found.dot, found.staged) == (4, "int_dot", "packed")
    medium = KERNEL.stock(PROBLEM.at(64), MALI)
    assert isinstance(medium, MulMmqTile)
    assert medium.numbers == (128, 64, 64, 32, 16, 32, 1, 2, 2, 1, 16)
    assert KERNEL.stock(dataclasses.replace(PROBLEM, format="IQ4_NL"), MALI) is None
    assert KERNEL.stock(PROBLEM, devices.by_name("lavapipe")) is None


@pytest.mark.parametrize("card", ["mali-g610", "h200", "rx-9060-xt", "lavapipe"])
@pytest.mark.parametrize("m", [1, 17, 128])
def test_every_card_has_valid_tiles(card: str, m: int) -> None:
    limits = devices.by_name(card)
    for name in ("Q4_K", "PTQ1_0", "Q8_0"):
        problem = Problem(name, 2048, 2048, m)
        valid = [t for t in KERNEL.space(problem, limits) if not KERNEL.broken_rules(t, problem, limits)]
        assert len(valid) > 50
        assert all(KERNEL.price(t, problem, limits).seconds > 0 for t in valid[::17])
