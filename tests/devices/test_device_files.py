"""Device files answer for cards that are not here; a wrong number or a silent default would mislead every price."""

from __future__ import annotations

import pytest

from warptile import devices
from warptile.contracts import UnusableInput
from warptile.devices.file import read_limits
from warptile.kernels.triton.matrix import architecture

CARDS = ("h200", "lavapipe", "mali-g610", "rtx-3060", "rtx-4070", "rx-9060-xt")
COMPILED_FOR = {
    "a100": "sm_80",
    "h200": "sm_90",
    "mi300x": "gfx942",
    "rtx-3060": "sm_86",
    "rtx-4070": "sm_89",
    "rtx-5090": "sm_120",
    "rx-7900-xtx": "gfx1100",
    "rx-9060-xt": "gfx1200",
}

GOOD = """
name = "card"
vendor = "arm"
kind = "gpu"
subgroup = 16
subgroup_sizes = [16]
shared_bytes = 32768
shared_bytes_per_unit = 32768
max_workgroup = 1024
max_grid = [65535, 65535, 65535]
max_buffer_bytes = 134217728
[vulkan]
"""


def test_every_card_of_the_issue_has_a_file() -> None:
    assert devices.names() == CARDS
    assert set(devices.names(None)) == set(CARDS) | set(COMPILED_FOR)
    assert devices.names("hip") == ("mi300x", "rx-7900-xtx", "rx-9060-xt")


@pytest.mark.parametrize(("card", "name"), COMPILED_FOR.items())
def test_triton_sees_a_card_by_its_name_or_its_architecture(card: str, name: str) -> None:
    found = devices.compile_only(card)
    assert architecture(found).name == name
    assert devices.compile_only(name.upper()) == found
    assert not found.live


@pytest.mark.parametrize(
    ("name", "said"), [("mali-g610", "no CUDA or ROCm compiler"), ("sm_37", "sm_37"), ("fp16", "fp16")]
)
def test_a_card_triton_does_not_compile_for_is_refused(name: str, said: str) -> None:
    with pytest.raises(UnusableInput, match=said):
        devices.compile_only(name)


@pytest.mark.parametrize("name", CARDS)
def test_a_card_is_found_in_any_case_and_is_not_live(name: str) -> None:
    found = devices.by_name(name.upper())
    assert found.name == name
    assert found.runtime == "vulkan"
    assert not found.live


def test_h200_shares_less_through_vulkan_than_through_cuda() -> None:
    assert devices.by_name("h200").shared_bytes == 49152
    assert devices.by_name("h200", "cuda").shared_bytes == 232448


def test_h200_pool_through_vulkan_takes_two_workgroups_of_24_kb_and_one_of_28() -> None:
    pool = devices.by_name("h200").shared_bytes_per_unit
    assert pool // (24 << 10) == 2
    assert pool // (28 << 10) == 1


def test_mali_g610_numbers() -> None:
    mali = devices.by_name("mali-g610")
    assert (mali.subgroup, mali.shared_bytes, mali.max_workgroup) == (16, 32768, 1024)
    assert (mali.threads_per_unit, mali.registers_per_unit) == (2048, 65536)
    assert [(b.registers, b.threads) for b in mali.register_bands] == [(32, 2048), (64, 1024)]


def test_rx_9060_xt_holds_64_kib() -> None:
    assert devices.by_name("rx-9060-xt").shared_bytes == 65536
    assert devices.by_name("rx-9060-xt", "hip").subgroup == 32


def test_lavapipe_is_software_of_subgroup_8_and_a_128_mib_range() -> None:
    lavapipe = devices.by_name("lavapipe")
    assert (lavapipe.kind, lavapipe.subgroup, lavapipe.max_buffer_bytes) == ("software", 8, 134217728)


def test_unknown_card_lists_the_known_ones() -> None:
    with pytest.raises(UnusableInput, match=r"'rtx-9999'.*h200.*rx-9060-xt"):
        devices.by_name("rtx-9999")


def test_a_path_is_not_a_card() -> None:
    with pytest.raises(UnusableInput):
        devices.by_name("../devices/h200")


def test_runtime_without_a_table_is_refused() -> None:
    with pytest.raises(UnusableInput, match=r"mali-g610.*no table \[cuda\]"):
        devices.by_name("mali-g610", "cuda")


def test_the_sample_below_is_good_before_it_is_broken() -> None:
    assert read_limits(GOOD, "vulkan", "card.toml").units == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("subgroup = 16", "subgroup = ", "not TOML"),
        ("subgroup = 16", "subgroup = 8", "not in"),
        ("subgroup = 16", 'subgroup = "16"', "subgroup must be a whole number"),
        ("subgroup = 16", "", "missing subgroup"),
        ("subgroup = 16", "subgroup = 16\nunit = 4", "unknown key unit"),
        ("max_workgroup = 1024", "max_workgroup = -1", "max_workgroup must be"),
        ("max_workgroup = 1024", "max_workgroup = true", "max_workgroup must be"),
        ("[65535, 65535, 65535]", "[65535]", "three"),
        ('kind = "gpu"', 'kind = "cpu"', "kind is 'cpu'"),
        ('vendor = "arm"', "vendor = 1", "vendor must be text"),
        ("[vulkan]", "[vulkan]\nregister_bands = [{ registers = 32 }]", "registers, threads"),
        ("[vulkan]", "[vulkan]\nfeatures = [1]", "features must be"),
        ("[vulkan]", "[vulkan]\nread_gb_per_s = 'fast'", "read_gb_per_s must be"),
        ("[vulkan]", "[vulkan]\nlive = true", "unknown key live"),
        ("[vulkan]", "[hip]", r"no table \[vulkan\]"),
    ],
)
def test_malformed_file_is_one_clear_line(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(UnusableInput, match=message) as caught:
        read_limits(GOOD.replace(old, new, 1), "vulkan", "card.toml")
    assert "card.toml" in str(caught.value)
    assert "\n" not in str(caught.value)
