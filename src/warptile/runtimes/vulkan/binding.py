"""The `vulkan` package, which loads libvulkan.so.1 when imported: `vk`, and its cffi parts `ffi` and `lib`.

Where the machine has no loader, the one unpacked beside the environment is loaded first. Importing this module, and
so any other of this folder but `embedded` and `loader`, raises UnusableInput where there is neither.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from warptile.contracts.errors import UnusableInput
from warptile.runtimes.vulkan import embedded

_CHOICES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
_NO_LOADER = "no Vulkan loader (libvulkan.so.1) on this machine: install your card's driver or Mesa's"


def user_choice() -> dict[str, str]:
    """The variables by which the user, and not the unpacked driver, says which driver the loader takes."""
    if embedded.chosen_here():
        return {}
    return {name: os.environ[name] for name in _CHOICES if os.environ.get(name)}


def activate_unpacked_driver() -> bool:
    """Make the unpacked driver usable here; False where there is none."""
    folder = embedded.find()
    if folder is None:
        return False
    embedded.activate(folder)
    return True


def _load() -> Any:
    chosen = user_choice()
    if embedded.chosen_here():
        # A process started by one that uses the unpacked driver has its choice, but not yet its libraries.
        embedded.activate(Path(os.environ["VK_DRIVER_FILES"]).parent)
    try:
        return importlib.import_module("vulkan")
    except OSError:
        if not activate_unpacked_driver():
            raise UnusableInput(_NO_LOADER) from None
        os.environ.update(chosen)
        return importlib.import_module("vulkan")


vk: Any = _load()
ffi: Any = vk.ffi
lib: Any = vk.lib
