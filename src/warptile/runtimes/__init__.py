"""Runtimes: the only rooms that talk to a driver. `open_device("vulkan:0", places)` finds the one a prefix names.

Each runtime is one folder here. It declares `PREFIXES` and exports `open_device(text, places, validation)`
and `list_devices()`; importing the folder must not load a driver. The runtime it opens has a dictionary `scratch`
beside the protocol's members, for the jobs of a worker.
"""

from warptile.runtimes.entry import DeviceEntry
from warptile.runtimes.registry import Survey, list_devices, open_device, survey

__all__ = ["DeviceEntry", "Survey", "list_devices", "open_device", "survey"]
