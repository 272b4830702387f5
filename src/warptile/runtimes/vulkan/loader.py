"""Getting from "is there Vulkan at all?" to an instance with at least one device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warptile.contracts.errors import UnusableInput

if TYPE_CHECKING:
    from warptile.runtimes.vulkan.instance import Instance

_NO_DEVICE = "the Vulkan loader reports no device: install your card's driver or Mesa's, or check VK_DRIVER_FILES"


def instance_with_devices(validation: bool = False) -> Instance:
    """An instance that has devices: the system's, else the software driver unpacked beside the environment.

    A driver chosen through VK_DRIVER_FILES or VK_ICD_FILENAMES is the user's word: nothing stands in for it.
    Raises UnusableInput: no loader, no device, `validation` without the layer.
    """
    from warptile.runtimes.vulkan.binding import activate_unpacked_driver, user_choice
    from warptile.runtimes.vulkan.instance import Instance

    instance = Instance(validation)
    if not instance.devices and not user_choice() and activate_unpacked_driver():
        instance.close()
        instance = Instance(validation)
    if not instance.devices:
        instance.close()
        raise UnusableInput(_NO_DEVICE)
    return instance
