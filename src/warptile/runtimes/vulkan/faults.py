"""The driver's result codes as warptile's errors, one line each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from warptile.contracts.errors import CandidateRejected, DeviceLost, OutOfMemory, UnusableInput
from warptile.runtimes.vulkan.binding import vk

_MEMORY = (
    vk.VkErrorOutOfHostMemory,
    vk.VkErrorOutOfDeviceMemory,
    vk.VkErrorOutOfPoolMemory,
    vk.VkErrorMemoryMapFailed,
    vk.VkErrorTooManyObjects,
    vk.VkErrorFragmentedPool,
)


@contextmanager
def driver_faults(
    doing: str, otherwise: type[UnusableInput] | type[CandidateRejected] = UnusableInput
) -> Iterator[None]:
    """Raise DeviceLost, OutOfMemory, or `otherwise`, for what the driver returns while `doing`."""
    try:
        yield
    except (vk.VkError, vk.VkException) as error:
        raise translated(error, doing, otherwise) from None
    except KeyError as error:
        # The binding looks results up in a table that lacks some codes.
        if not isinstance(error.args[0], int):
            raise
        raise otherwise(f"{doing}: the driver says result {error.args[0]}") from None


def translated(
    error: Exception, doing: str, otherwise: type[UnusableInput] | type[CandidateRejected] = UnusableInput
) -> UnusableInput | CandidateRejected:
    """The binding's exception as one of ours."""
    if isinstance(error, vk.VkErrorDeviceLost):
        return DeviceLost(f"{doing}: the driver lost the device")
    if isinstance(error, _MEMORY):
        return OutOfMemory(f"{doing}: out of memory ({_name(error)})")
    return otherwise(f"{doing}: the driver says {_name(error)}")


def check(result: int, doing: str) -> None:
    """Raise for a VkResult below zero, as `driver_faults` does."""
    if result < 0:
        with driver_faults(doing):
            raise vk.exception_codes[result]


def _name(error: Exception) -> str:
    return type(error).__name__.removeprefix("Vk")
