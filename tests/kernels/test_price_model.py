"""The paper arithmetic kernels share, held to published numbers."""

from __future__ import annotations

import dataclasses

import pytest

from warptile import devices
from warptile.contracts import UnusableInput
from warptile.kernels.price_model import (
    ThreadWork,
    Traffic,
    fill_of_last_wave,
    launch_seconds,
    mul_mm_shared_bytes,
    mul_mmq_shared_bytes,
    registers,
    residency,
)

MALI = devices.by_name("mali-g610")

# step: (block, tile_n, tile_m, accumulators, mul_mm bytes, threads), and threads of mul_mmq Q4_K by BK_STEP.
MALI_STEPS = {
    "stock L": (128, 128, 128, 128, 17408, 128, {4: 128}),
    "stock M": (128, 64, 64, 32, 8704, 384, {4: 256}),
    "it1": (128, 64, 32, 16, 6528, 640, {4: 384}),
    "it1, sides swapped": (128, 32, 64, 16, 6528, 640, {4: 256}),
    "it2": (128, 64, 64, 32, 8704, 384, {4: 256}),
    "it3": (256, 64, 64, 16, 8704, 768, {4: 512}),
    "it4, it5": (256, 64, 64, 16, 8704, 768, {2: 1024}),
}


@pytest.mark.parametrize("step", MALI_STEPS)
def test_mali_mul_mm_bytes_and_threads(step: str) -> None:
    block, tile_n, tile_m, accumulators, shared, threads, _ = MALI_STEPS[step]
    assert mul_mm_shared_bytes(tile_n, tile_m, 32, "fp16") == shared
    held = registers(MALI, accumulators, operands=8)
    found = residency(MALI, block, shared, held.count)
    assert (found.threads, found.limited_by) == (threads, "shared memory")


@pytest.mark.parametrize("step", MALI_STEPS)
def test_mali_mul_mmq_threads_by_shared_memory(step: str) -> None:
    block, tile_n, tile_m, _, _, _, by_step = MALI_STEPS[step]
    no_bands = dataclasses.replace(MALI, register_bands=(), registers_per_unit=0)
    for bk_step, threads in by_step.items():
        shared = mul_mmq_shared_bytes("Q4_K", tile_n, tile_m, bk_step)
        assert residency(no_bands, block, shared, 0).threads == threads


def test_it6_gains_nothing_because_registers_cap_it() -> None:
    shared = mul_mmq_shared_bytes("Q4_K", 64, 64, 1)
    assert shared == 3584
    assert MALI.shared_bytes // shared * 256 == 2304
    without_registers = dataclasses.replace(MALI, register_bands=(), registers_per_unit=0)
    assert residency(without_registers, 256, shared, 0).threads == 2048
    it5 = residency(MALI, 256, mul_mmq_shared_bytes("Q4_K", 64, 64, 2), registers(MALI, 16, 8).count)
    it6 = residency(MALI, 256, shared, registers(MALI, 16, 8).count)
    assert it5.threads == it6.threads == 1024
    assert it6.limited_by == "registers"


@pytest.mark.parametrize(
    ("accumulators", "band", "spills"),
    [(8, 32, False), (15, 32, False), (16, 64, False), (17, 64, True), (128, 64, True)],
)
def test_mali_register_bands(accumulators: int, band: int, spills: bool) -> None:
    held = registers(MALI, accumulators, operands=8)
    assert (held.count, held.spills) == (band, spills)


def test_drivers_report_these_shared_sizes() -> None:
    mul_mm = [mul_mm_shared_bytes(n, m, 32, "fp16") for n, m in ((128, 128), (64, 64))]
    mul_mmq = [
        mul_mmq_shared_bytes("Q4_K", n, m, step)
        for n, m, step in ((128, 128, 4), (64, 64, 4), (64, 64, 2), (64, 64, 1))
    ]
    assert mul_mm + mul_mmq == [17408, 8704, 28672, 14336, 7168, 3584]


def test_fp32_pairs_take_twice_the_bytes() -> None:
    assert mul_mm_shared_bytes(64, 64, 32, "fp32") == 136 * 128


@pytest.mark.parametrize(
    ("name", "a"),
    [("Q2_K", 16), ("Q4_0", 20), ("Q4_1", 20), ("Q3_K", 20), ("Q4_K", 20), ("Q5_0", 24), ("Q5_1", 24)]
    + [(name, 36) for name in ("Q8_0", "Q5_K", "Q6_K", "MXFP4")],
)
def test_mul_mmq_block_bytes(name: str, a: int) -> None:
    assert mul_mmq_shared_bytes(name, 64, 32, 2) == 2 * (a * 64 + 36 * 32)


def test_mul_mmq_has_no_block_for_other_formats() -> None:
    with pytest.raises(UnusableInput, match="TQ1_0"):
        mul_mmq_shared_bytes("TQ1_0", 64, 64, 4)


def test_residency_names_each_limit() -> None:
    nvidia = devices.by_name("rtx-3060")
    assert residency(nvidia, 128, 1024, 255).limited_by == "registers"
    assert residency(nvidia, 128, 49152, 32).limited_by == "shared memory"
    assert residency(nvidia, 1024, 1024, 32).limited_by == "threads"
    assert residency(nvidia, 32, 1024, 32).limited_by == "workgroups"
    unknown = dataclasses.replace(
        nvidia, registers_per_unit=0, shared_bytes_per_unit=0, threads_per_unit=0, workgroups_per_unit=0
    )
    assert residency(unknown, 64, 1024, 32).limited_by == "unknown"


def test_residency_is_cut_to_whole_workgroups() -> None:
    # 65536 registers / 72 = 910 threads = 4 workgroups of 192.
    assert residency(devices.by_name("rtx-3060"), 192, 1024, 70).threads == 768


def test_fill_of_the_last_wave() -> None:
    card = devices.by_name("rtx-3060")
    assert fill_of_last_wave(card, 28 * 2 + 14, 2) == 0.25
    assert fill_of_last_wave(card, 28 * 2, 2) == 1.0
    assert fill_of_last_wave(devices.by_name("mali-g610"), 3, 2) == 1.0


def test_more_work_never_gets_cheaper() -> None:
    for name in devices.names():
        card = devices.by_name(name)
        resident = residency(card, 128, 8192, 64)
        base = ThreadWork(fma=1000, alu=100, shared_words=100, global_words=10, uniform_words=10, barriers=4, live=16)
        bytes_ = Traffic(1e6, 1e5)
        cost = launch_seconds(card, base, bytes_, 128, 64, resident)
        for field in ("fma", "alu", "shared_words", "global_words", "uniform_words", "barriers"):
            more = dataclasses.replace(base, **{field: 2 * getattr(base, field)})
            assert launch_seconds(card, more, bytes_, 128, 64, resident) > cost, (name, field)


def test_bandwidth_bounds_from_below() -> None:
    card = devices.by_name("h200")
    idle = ThreadWork(fma=1)
    seconds = launch_seconds(card, idle, Traffic(4.8e9, 4.8e9), 128, 132, residency(card, 128, 1024, 32))
    assert seconds == pytest.approx(1e-3)
