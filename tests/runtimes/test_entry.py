"""How a text picks one device of several."""

from __future__ import annotations

import pytest

from warptile.contracts import UnusableInput
from warptile.runtimes import list_devices
from warptile.runtimes.entry import DeviceEntry, pick

CARDS = [
    DeviceEntry("vulkan:0", "AMD Radeon RX 9060 XT (RADV GFX1200)", "radv", "discrete", "vulkan"),
    DeviceEntry("vulkan:1", "AMD Radeon Graphics (RADV RAPHAEL)", "radv", "integrated", "vulkan"),
    DeviceEntry("vulkan:2", "llvmpipe (LLVM 15.0.6, 256 bits)", "llvmpipe", "software", "vulkan"),
]


@pytest.mark.parametrize(
    ("text", "index"), [("vulkan", 0), ("vulkan:", 0), ("vulkan:1", 1), ("vulkan:9060", 0), ("vulkan:LLVMpipe", 2)]
)
def test_numbers_and_parts_of_names(text: str, index: int) -> None:
    assert pick(text, CARDS) == index


def test_an_ambiguous_name_lists_what_it_matches() -> None:
    with pytest.raises(UnusableInput, match=r"vulkan:radeon means several: vulkan:0 AMD .*; vulkan:1 AMD "):
        pick("vulkan:radeon", CARDS)


@pytest.mark.parametrize("text", ["vulkan:3", "vulkan:15", "vulkan:geforce"])
def test_nothing_that_matches_lists_what_there_is(text: str) -> None:
    with pytest.raises(UnusableInput, match=rf"no device {text}; there is: vulkan:0 AMD .*vulkan:2 llvmpipe"):
        pick(text, CARDS)


def test_no_device_at_all() -> None:
    with pytest.raises(UnusableInput, match="no vulkan device"):
        pick("vulkan", [])


def test_the_software_device_of_the_tests_is_listed_with_its_driver(software_device: str) -> None:
    (entry,) = [entry for entry in list_devices() if entry.id == software_device]
    assert entry.name
    assert entry.driver
    assert entry.to_json()["type"] == "software"
