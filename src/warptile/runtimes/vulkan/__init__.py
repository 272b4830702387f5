"""Vulkan, on the `vulkan` package. Nothing here loads a driver until a device is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warptile.places import Places
from warptile.runtimes.entry import DeviceEntry, pick

if TYPE_CHECKING:
    from warptile.runtimes.vulkan.runtime import VulkanRuntime

PREFIXES = ("vulkan",)


def list_devices() -> list[DeviceEntry]:
    """Every Vulkan device the loader reports. Raises UnusableInput without a loader or a device."""
    from warptile.runtimes.vulkan.loader import instance_with_devices

    with instance_with_devices() as instance:
        return [device.entry for device in instance.devices]


def open_device(text: str, places: Places, *, validation: bool = False) -> VulkanRuntime:
    """Open `vulkan`, `vulkan:NUMBER` or `vulkan:PART_OF_NAME`.

    Raises UnusableInput: no loader, no device, no such device, an ambiguous name, `validation` without the
    layer, a device without compute timestamps, a folder of `places` that cannot be written.
    """
    from warptile.runtimes.vulkan.loader import instance_with_devices

    places.ready()
    instance = instance_with_devices(validation=validation)
    try:
        from warptile.runtimes.vulkan.runtime import VulkanRuntime

        chosen = instance.devices[pick(text, [device.entry for device in instance.devices])]
        return VulkanRuntime(instance, chosen, places)
    except BaseException:
        instance.close()
        raise
