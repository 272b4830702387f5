"""Getting from "is there Vulkan at all?" to an instance with at least one device."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from warptile.contracts.errors import UnusableInput

if TYPE_CHECKING:
    from warptile.runtimes.vulkan.instance import Instance

_CHOICES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
_NO_LOADER = "no Vulkan loader (libvulkan.so.1) on this machine: install your card's driver or Mesa's"
_NO_DEVICE = "the Vulkan loader reports no device: install your card's driver or Mesa's, or check VK_DRIVER_FILES"


def instance_with_devices(validation: bool = False) -> Instance:
    """An instance that has devices: the system's, else the software driver unpacked beside the environment.

    A driver chosen through VK_DRIVER_FILES or VK_ICD_FILENAMES is the user's word: nothing stands in for it.
    Raises UnusableInput: no loader, no device, `validation` without the layer.
    """
    from warptile.runtimes.vulkan import embedded

    chosen = {name: os.environ[name] for name in _CHOICES if os.environ.get(name)}
    if embedded.chosen_here():
        # A process started by one that uses the unpacked driver has its choice, but not yet its libraries.
        embedded.activate(Path(os.environ["VK_DRIVER_FILES"]).parent)
        chosen = {}
    try:
        importlib.import_module("vulkan")
    except OSError:
        if not _activate_unpacked_driver():
            raise UnusableInput(_NO_LOADER) from None
        os.environ.update(chosen)
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
