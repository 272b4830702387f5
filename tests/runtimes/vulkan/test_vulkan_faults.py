"""What a driver returns becomes the outcome the journal keeps, in one line."""

from __future__ import annotations

import pickle

import pytest

from warptile.contracts import CompileFailed, DeviceLost, OutOfMemory, UnusableInput, WarptileError
from warptile.runtimes.vulkan.binding import vk
from warptile.runtimes.vulkan.faults import check, driver_faults


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (vk.VK_ERROR_DEVICE_LOST, DeviceLost),
        (vk.VK_ERROR_OUT_OF_DEVICE_MEMORY, OutOfMemory),
        (vk.VK_ERROR_OUT_OF_HOST_MEMORY, OutOfMemory),
        (vk.VK_ERROR_FEATURE_NOT_PRESENT, UnusableInput),
        (-1000999999, UnusableInput),
    ],
)
def test_result_codes_even_unknown_ones(code: int, error: type[WarptileError]) -> None:
    with pytest.raises(WarptileError) as caught:
        check(code, "running abc")
    assert type(caught.value) is error
    assert str(caught.value).startswith("running abc: ")
    assert "\n" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_what_is_no_error_passes() -> None:
    check(vk.VK_SUCCESS, "running")
    check(vk.VK_TIMEOUT, "waiting")


def test_a_compilers_refusal_is_a_failed_compile() -> None:
    line = "building the pipeline: the driver says ErrorUnknown"
    with pytest.raises(CompileFailed, match=line), driver_faults("building the pipeline", CompileFailed):
        raise vk.VkErrorUnknown
    with pytest.raises(DeviceLost), driver_faults("building the pipeline", CompileFailed):
        raise vk.VkErrorDeviceLost


def test_a_key_error_of_our_own_is_not_swallowed() -> None:
    with pytest.raises(KeyError), driver_faults("running"):
        raise KeyError("name")
