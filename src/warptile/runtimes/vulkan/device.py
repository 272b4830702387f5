"""An opened device: the logical device, its compute queue and its memory types."""

from __future__ import annotations

from typing import Any

from warptile.contracts.errors import UnusableInput
from warptile.runtimes.vulkan.binding import vk
from warptile.runtimes.vulkan.faults import driver_faults
from warptile.runtimes.vulkan.features import Features, supported
from warptile.runtimes.vulkan.instance import PhysicalDevice


class Device:
    """The logical device with one compute queue.

    timestamp_bits, timestamp_ns: valid bits of a timestamp and nanoseconds a tick.
    Raises UnusableInput for a Vulkan 1.0 device, where no queue family computes, or where its timestamps have no
    valid bits: a device that cannot be timed cannot be tuned.
    """

    def __init__(self, physical: PhysicalDevice) -> None:
        self.physical = physical
        if physical.api < (1, 1):
            raise UnusableInput(f"{physical.entry.id} {physical.entry.name} has Vulkan 1.0 only; warptile needs 1.1")
        self.features: Features = supported(physical)
        self.limits: Any = physical.properties.limits
        self.memory: Any = vk.vkGetPhysicalDeviceMemoryProperties(physical.handle)
        self.family, bits = _compute_family(physical)
        check_timestamps(physical.entry.id, bits)
        self.timestamp_bits = bits
        self.timestamp_ns = float(self.limits.timestampPeriod)
        chain, kept = self.features.chain()
        extensions = list(self.features.extensions)
        queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=self.family, queueCount=1, pQueuePriorities=[1.0])
        with driver_faults(f"opening {physical.entry.id} {physical.entry.name}"):
            self.handle: Any = vk.vkCreateDevice(
                physical.handle,
                vk.VkDeviceCreateInfo(
                    pNext=chain, queueCreateInfoCount=1, pQueueCreateInfos=[queue],
                    enabledLayerCount=0, ppEnabledLayerNames=[],
                    enabledExtensionCount=len(extensions), ppEnabledExtensionNames=extensions,
                    pEnabledFeatures=[self.features.core()],
                ),
                None,
            )  # fmt: skip
        del kept
        self.queue: Any = vk.vkGetDeviceQueue(self.handle, self.family, 0)

    @property
    def software(self) -> bool:
        """Whether threads run on the host's processor."""
        return self.physical.type == "software"

    def close(self) -> None:
        """Destroy the device; everything made from it must be gone."""
        if self.handle is not None:
            vk.vkDestroyDevice(self.handle, None)
            self.handle = None


def check_timestamps(device: str, bits: int) -> None:
    """Raise UnusableInput for a queue whose timestamps carry no bits (`timestampValidBits` = 0)."""
    if bits == 0:
        raise UnusableInput(
            f"{device} has no timestamps on its compute queue (timestampValidBits is 0): cannot be timed"
        )


def _compute_family(physical: PhysicalDevice) -> tuple[int, int]:
    families = list(vk.vkGetPhysicalDeviceQueueFamilyProperties(physical.handle))
    computing = [
        (i, int(f.timestampValidBits)) for i, f in enumerate(families) if f.queueFlags & vk.VK_QUEUE_COMPUTE_BIT
    ]
    if not computing:
        raise UnusableInput(f"{physical.entry.id} {physical.entry.name} has no compute queue")
    return next((family for family in computing if family[1]), computing[0])
