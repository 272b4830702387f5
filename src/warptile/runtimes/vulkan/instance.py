"""The Vulkan instance and the devices it reports."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any

from warptile.contracts.errors import UnusableInput
from warptile.runtimes.entry import DeviceEntry
from warptile.runtimes.vulkan.binding import vk
from warptile.runtimes.vulkan.faults import driver_faults
from warptile.runtimes.vulkan.query import properties2

VALIDATION_LAYER = "VK_LAYER_KHRONOS_validation"

_TYPES = {
    vk.VK_PHYSICAL_DEVICE_TYPE_CPU: "software",
    vk.VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: "integrated",
    vk.VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: "discrete",
    vk.VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: "virtual",
}


@dataclass(frozen=True, eq=False)
class PhysicalDevice:
    """A device as the loader reports it, before it is opened. properties: VkPhysicalDeviceProperties."""

    handle: Any
    instance: Any
    properties: Any
    extensions: frozenset[str]
    entry: DeviceEntry

    @property
    def api(self) -> tuple[int, int]:
        """Vulkan version of the device, (major, minor)."""
        return _api(self.properties)

    @property
    def type(self) -> str:
        """software, integrated, discrete, virtual or other."""
        return self.entry.type


class Instance:
    """A Vulkan 1.3 instance. devices: in the loader's order, which is the order of their numbers."""

    def __init__(self, validation: bool = False) -> None:
        self.handle: Any = None
        layers = [VALIDATION_LAYER] if validation else []
        if validation and VALIDATION_LAYER not in _installed_layers():
            raise UnusableInput(f"validation was asked for, but {VALIDATION_LAYER} is not installed")
        application = vk.VkApplicationInfo(
            pApplicationName="warptile", applicationVersion=1, pEngineName="warptile", engineVersion=1,
            apiVersion=vk.VK_MAKE_VERSION(1, 3, 0),
        )  # fmt: skip
        self.devices: list[PhysicalDevice] = []
        try:
            with driver_faults("opening Vulkan"):
                self.handle = vk.vkCreateInstance(
                    vk.VkInstanceCreateInfo(
                        pApplicationInfo=application, enabledLayerCount=len(layers), ppEnabledLayerNames=layers,
                        enabledExtensionCount=0, ppEnabledExtensionNames=[],
                    ),
                    None,
                )  # fmt: skip
                handles = list(vk.vkEnumeratePhysicalDevices(self.handle))
        except UnusableInput as error:
            # The loader's own way to say that it found no driver at all.
            if "IncompatibleDriver" in str(error) or "InitializationFailed" in str(error):
                return
            raise
        self.devices = [_describe(self.handle, handle, number) for number, handle in enumerate(handles)]

    def close(self) -> None:
        """Destroy the instance; devices opened from it must be closed first."""
        if self.handle is not None:
            vk.vkDestroyInstance(self.handle, None)
            self.handle = None

    def __enter__(self) -> Instance:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _installed_layers() -> set[str]:
    with driver_faults("listing Vulkan layers"):
        return {layer.layerName for layer in vk.vkEnumerateInstanceLayerProperties()}


def _describe(instance: Any, handle: Any, number: int) -> PhysicalDevice:
    properties = vk.vkGetPhysicalDeviceProperties(handle)
    with driver_faults("listing Vulkan extensions"):
        extensions = frozenset(e.extensionName for e in vk.vkEnumerateDeviceExtensionProperties(handle, None))
    entry = DeviceEntry(
        id=f"vulkan:{number}",
        name=properties.deviceName,
        driver=_driver(handle, properties, extensions),
        type=_TYPES.get(properties.deviceType, "other"),
        runtime="vulkan",
    )
    return PhysicalDevice(handle, instance, properties, extensions, entry)


def _driver(handle: Any, properties: Any, extensions: frozenset[str]) -> str:
    api = _api(properties)
    if api < (1, 1) or (api < (1, 2) and "VK_KHR_driver_properties" not in extensions):
        return f"driver version {properties.driverVersion:#x}"
    info = properties2(handle, vk.VkPhysicalDeviceDriverProperties())
    name, detail = (vk.ffi.string(text).decode(errors="replace") for text in (info.driverName, info.driverInfo))
    return f"{name} {detail} ({properties.driverVersion:#x})"


def _api(properties: Any) -> tuple[int, int]:
    version = int(properties.apiVersion)
    return version >> 22 & 0x7F, version >> 12 & 0x3FF
