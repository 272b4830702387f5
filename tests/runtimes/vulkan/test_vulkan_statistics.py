"""Reading what compilers report: the spill count of one vendor is not where the other's is."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from warptile import devices
from warptile.contracts import Limits
from warptile.runtimes.vulkan.limits import host_cache_bytes, with_card_data
from warptile.runtimes.vulkan.statistics import resources


def test_nothing_reported_is_none_not_zero() -> None:
    assert resources([]) is None


def test_nvidia_local_memory_carries_its_bytes_in_the_low_word() -> None:
    rows = [
        ("Register Count", 168.0),
        ("Binary Size", 27904.0),
        ("Stack Size", 0.0),
        ("Local Memory Size", float((7 << 32) + 296)),
        ("Input Count", 0.0),
        ("Output Count", 0.0),
        ("Shared Memory Size", 36864.0),
    ]
    found = resources([(32, rows)])
    assert found is not None
    assert (found.registers, found.spill_bytes, found.shared_bytes) == (168, 296, 36864)
    assert (found.subgroup, found.code_bytes, found.scratch_bytes) == (32, 27904, 0)
    assert found.spilled_registers is None
    assert dict(found.raw)["Local Memory Size"] == (7 << 32) + 296


def test_radv_scratch_is_kept_apart_from_spilled_registers() -> None:
    rows = [
        ("Driver pipeline hash", 5.0),
        ("SGPRs", 128.0),
        ("VGPRs", 256.0),
        ("Spilled SGPRs", 0.0),
        ("Spilled VGPRs", 0.0),
        ("Code size", 9000.0),
        ("LDS size", 8192.0),
        ("Scratch size", 1024.0),
    ]
    found = resources([(64, rows)])
    assert found is not None
    assert (found.registers, found.spilled_registers, found.spill_bytes) == (256, 0, 0)
    assert (found.scratch_bytes, found.shared_bytes, found.code_bytes) == (1024, 8192, 9000)


def test_unknown_statistics_are_kept_but_claim_nothing() -> None:
    found = resources([(16, [("Loop count", 3.0)])])
    assert found is not None
    assert (found.registers, found.spill_bytes, found.scratch_bytes) == (None, None, None)
    assert found.raw == (("Loop count", 3.0),)


def test_the_hosts_last_level_cache_counts(tmp_path: Path) -> None:
    for index, (level, size) in enumerate([("1", "32K"), ("1", "48K"), ("2", "1024K"), ("3", "36M")]):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        (folder / "level").write_text(level + "\n")
        (folder / "size").write_text(size + "\n")
    assert host_cache_bytes(tmp_path) == 36 << 20


def test_a_host_without_sys_is_asked_through_the_c_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"SC_LEVEL3_CACHE_SIZE": 0, "SC_LEVEL2_CACHE_SIZE": 2 << 20}
    monkeypatch.setattr("os.sysconf_names", dict.fromkeys(sizes, 0))
    monkeypatch.setattr("os.sysconf", sizes.__getitem__)
    assert host_cache_bytes(tmp_path / "absent") == 2 << 20
    sizes["SC_LEVEL2_CACHE_SIZE"] = -1
    assert host_cache_bytes(tmp_path / "absent") == 0


def live(name: str, **known: int) -> Limits:
    bare = Limits(name, "vulkan", "nvidia", "gpu", 32, (32,), 49152, 49152, 1024, (65535,) * 3, 1 << 30, live=True)
    return dataclasses.replace(bare, **known)  # type: ignore[arg-type]


def test_a_cards_data_file_fills_what_the_driver_does_not_say_and_nothing_else() -> None:
    data = devices.by_name("h200")
    found = with_card_data(live("NVIDIA H200", units=7))
    assert (found.name, found.live, found.units) == ("NVIDIA H200", True, 7)
    assert found.cache_bytes == data.cache_bytes > 0
    assert found.registers_per_unit == data.registers_per_unit > 0
    assert found.shared_bytes_per_unit == data.shared_bytes_per_unit != 49152
    assert found.max_grid == (65535, 65535, 65535)
    assert with_card_data(live("NVIDIA H200", shared_bytes=1)).shared_bytes_per_unit == 49152
    assert with_card_data(live("AMD Radeon RX 9060 XT (RADV GFX1200)")).cache_bytes > 0


def test_a_relatives_data_file_does_not_speak_for_a_card() -> None:
    for name in ("NVIDIA GeForce RTX 4070 Ti", "NVIDIA H20", "NVIDIA GH200", "NVIDIA GeForce RTX 4070 Laptop GPU"):
        assert with_card_data(live(name)) == live(name)
