"""Which Vulkan features warptile turns on, and the names kernels know them by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warptile.runtimes.vulkan.binding import ffi, vk
from warptile.runtimes.vulkan.instance import PhysicalDevice
from warptile.runtimes.vulkan.query import features2, properties2


@dataclass(frozen=True)
class Group:
    """One feature structure: available from a core version (None: never core) or with an extension."""

    structure: str
    extension: str
    core: tuple[int, int] | None
    fields: tuple[str, ...]


GROUPS = (
    Group("VkPhysicalDevice16BitStorageFeatures", "VK_KHR_16bit_storage", (1, 1), ("storageBuffer16BitAccess",)),
    Group("VkPhysicalDevice8BitStorageFeatures", "VK_KHR_8bit_storage", (1, 2), ("storageBuffer8BitAccess",)),
    Group(
        "VkPhysicalDeviceShaderFloat16Int8Features",
        "VK_KHR_shader_float16_int8",
        (1, 2),
        ("shaderFloat16", "shaderInt8"),
    ),
    Group(
        "VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures",
        "VK_KHR_shader_subgroup_extended_types",
        (1, 2),
        ("shaderSubgroupExtendedTypes",),
    ),
    Group(
        "VkPhysicalDeviceVulkanMemoryModelFeatures",
        "VK_KHR_vulkan_memory_model",
        (1, 2),
        ("vulkanMemoryModel", "vulkanMemoryModelDeviceScope"),
    ),
    Group(
        "VkPhysicalDeviceSubgroupSizeControlFeatures",
        "VK_EXT_subgroup_size_control",
        (1, 3),
        ("subgroupSizeControl", "computeFullSubgroups"),
    ),
    Group(
        "VkPhysicalDeviceShaderIntegerDotProductFeatures",
        "VK_KHR_shader_integer_dot_product",
        (1, 3),
        ("shaderIntegerDotProduct",),
    ),
    Group("VkPhysicalDevicePipelineRobustnessFeaturesEXT", "VK_EXT_pipeline_robustness", None, ("pipelineRobustness",)),
    Group("VkPhysicalDeviceMaintenance4Features", "VK_KHR_maintenance4", (1, 3), ("maintenance4",)),
    Group("VkPhysicalDeviceCooperativeMatrixFeaturesKHR", "VK_KHR_cooperative_matrix", None, ("cooperativeMatrix",)),
    Group(
        "VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR",
        "VK_KHR_pipeline_executable_properties",
        None,
        ("pipelineExecutableInfo",),
    ),
)

CORE_FIELDS = ("shaderInt16", "shaderInt64", "shaderFloat64")

_NAMES = {
    "fp16": "shaderFloat16",
    "int8": "shaderInt8",
    "int16": "shaderInt16",
    "int64": "shaderInt64",
    "int_dot": "shaderIntegerDotProduct",
    "storage16": "storageBuffer16BitAccess",
    "storage8": "storageBuffer8BitAccess",
    "coopmat": "cooperativeMatrix",
    "memory_model": "vulkanMemoryModel",
    "robust": "pipelineRobustness",
}

_SUBGROUP_OPERATIONS = {
    "subgroup_arithmetic": vk.VK_SUBGROUP_FEATURE_ARITHMETIC_BIT,
    "subgroup_shuffle": vk.VK_SUBGROUP_FEATURE_SHUFFLE_BIT,
}


@dataclass(frozen=True)
class Features:
    """What is turned on. driver: Vulkan's field names; names: as kernels and `Limits.features` write them."""

    driver: frozenset[str]
    names: frozenset[str]
    extensions: tuple[str, ...]

    def chain(self) -> tuple[Any, list[Any]]:
        """(pNext chain for vkCreateDevice, structures that must outlive the call)."""
        pointer, kept = ffi.NULL, []
        for group in GROUPS:
            on = {field: 1 for field in group.fields if field in self.driver}
            if on:
                structure = getattr(vk, group.structure)(pNext=pointer, **on)
                kept.append(structure)
                pointer = ffi.cast("void*", ffi.addressof(structure))
        return pointer, kept

    def core(self) -> Any:
        """VkPhysicalDeviceFeatures with the core ones set."""
        return vk.VkPhysicalDeviceFeatures(**{field: 1 for field in CORE_FIELDS if field in self.driver})


def supported(device: PhysicalDevice) -> Features:
    """Every feature warptile uses and the device has."""
    on: set[str] = set()
    extensions: list[str] = []
    for group in GROUPS:
        core = group.core is not None and device.api >= group.core
        if not core and group.extension not in device.extensions:
            continue
        structure = features2(device.handle, getattr(vk, group.structure)())
        have = {field for field in group.fields if getattr(structure, field)}
        if have and not core:
            extensions.append(group.extension)
        on |= have
    plain = vk.vkGetPhysicalDeviceFeatures(device.handle)
    on |= {field for field in CORE_FIELDS if getattr(plain, field)}
    names = {name for name, field in _NAMES.items() if field in on}
    names |= _subgroup_operations(device)
    if "int_dot" in names and _int_dot_accelerated(device):
        names.add("int_dot_accelerated")
    return Features(frozenset(on), frozenset(names), tuple(extensions))


def _subgroup_operations(device: PhysicalDevice) -> set[str]:
    info = properties2(device.handle, vk.VkPhysicalDeviceSubgroupProperties())
    if not info.supportedStages & vk.VK_SHADER_STAGE_COMPUTE_BIT:
        return set()
    return {name for name, bit in _SUBGROUP_OPERATIONS.items() if info.supportedOperations & bit}


def _int_dot_accelerated(device: PhysicalDevice) -> bool:
    info = properties2(device.handle, vk.VkPhysicalDeviceShaderIntegerDotProductProperties())
    return bool(info.integerDotProduct4x8BitPackedSignedAccelerated)
