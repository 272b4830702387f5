"""Getting from "is there Vulkan at all?" to an instance with at least one device."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from warptile.contracts.errors import UnusableInput

if TYPE_CHECKING:
    from warptile.runtimes.vulkan.instance import Instance

_NO_LOADER = "no Vulkan loader (libvulkan.so.1) on this machine: install your card's driver or Mesa's"
_NO_DEVICE = "the Vulkan loader reports no device: install your card's driver or Mesa's, or check VK_DRIVER_FILES"


def instance_with_devices(validation: bool = False) -> Instance:
    """An instance that has devices: the system's, else the software driver unpacked beside the environment.

    A driver chosen through VK_DRIVER_FILES or VK_ICD_FILENAMES is the user's word: nothing stands in for it.
    """
    chosen = any(os.environ.get(name) for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"))
    try:
        importlib.import_module("vulkan")
    except OSError:
        if not _activate_unpacked_driver():
            raise UnusableInput(_NO_LOADER) from None
        importlib.import_module("vulkan")
    from warptile.runtimes.vulkan.instance import Instance

    instance = Instance(validation)
    if not instance.devices and not chosen and _activate_unpacked_driver():
        instance.close()
        instance = Instance(validation)
    if not instance.devices:
        instance.close()
        raise UnusableInput(_NO_DEVICE)
    return instance


def _activate_unpacked_driver() -> bool:
    from warptile.runtimes.vulkan import embedded

    folder = embedded.find()
    if folder is None:
        return False
    embedded.activate(folder)
    return True
