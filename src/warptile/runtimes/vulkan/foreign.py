"""A compute pipeline of someone else's SPIR-V, built only to read what the driver's compiler says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warptile.contracts.errors import CompileFailed, UnusableInput
from warptile.contracts.price import Resources
from warptile.runtimes.entry import pick
from warptile.runtimes.vulkan.binding import ffi, vk
from warptile.runtimes.vulkan.device import Device
from warptile.runtimes.vulkan.faults import driver_faults
from warptile.runtimes.vulkan.limits import device_limits
from warptile.runtimes.vulkan.loader import instance_with_devices
from warptile.runtimes.vulkan.statistics import read_statistics, resources

_STORAGE, _UNIFORM = vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, vk.VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
_LEAST_PUSH_BYTES = 128
"""Every Vulkan device takes this many bytes of push constants."""


def foreign_resources(
    device: str,
    module: bytes,
    entry: str,
    bindings: Sequence[tuple[int, int, bool]],
    pushed: bool,
    constants: Sequence[tuple[int, int]],
    cooperative: bool = False,
) -> tuple[str, Resources | None]:
    """(device and driver, resources or None where the driver reports none) of one compute module.

    bindings: (set, binding, storage buffer, else uniform). constants: (id, 32-bit value); others keep the module's own
    values. cooperative: it uses cooperative matrices. Raises UnusableInput without the device or where it has no
    cooperative matrices, CompileFailed where the driver refuses.
    """
    with instance_with_devices() as instance:
        physical = instance.devices[pick(device, [d.entry for d in instance.devices])]
        opened = Device(physical)
        try:
            if cooperative and not device_limits(opened).has("coopmat"):
                raise UnusableInput(f"{physical.entry.name} has no cooperative matrices, which the module uses")
            found = _built(opened, module, entry, bindings, pushed, constants)
        finally:
            opened.close()
        return f"{physical.entry.name}, {physical.entry.driver}", found


def _built(
    device: Device,
    module: bytes,
    entry: str,
    bindings: Sequence[tuple[int, int, bool]],
    pushed: bool,
    constants: Sequence[tuple[int, int]],
) -> Resources | None:
    handle = device.handle
    made: list[tuple[Any, Any]] = []
    try:
        with driver_faults("laying out the module's bindings", CompileFailed):
            sets = []
            for number in range(max((b[0] for b in bindings), default=-1) + 1):
                slots = [
                    vk.VkDescriptorSetLayoutBinding(
                        binding=binding, descriptorType=_STORAGE if storage else _UNIFORM, descriptorCount=1,
                        stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT,
                    )
                    for at, binding, storage in bindings
                    if at == number
                ]  # fmt: skip
                info = vk.VkDescriptorSetLayoutCreateInfo(bindingCount=len(slots), pBindings=slots)
                sets.append(vk.vkCreateDescriptorSetLayout(handle, info, None))
                made.append((vk.vkDestroyDescriptorSetLayout, sets[-1]))
            most = int(device.limits.maxPushConstantsSize)
            ranges = [
                vk.VkPushConstantRange(
                    stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT, offset=0, size=max(most, _LEAST_PUSH_BYTES)
                )
            ] * pushed
            layout = vk.vkCreatePipelineLayout(
                handle,
                vk.VkPipelineLayoutCreateInfo(
                    setLayoutCount=len(sets), pSetLayouts=sets,
                    pushConstantRangeCount=len(ranges), pPushConstantRanges=ranges,
                ),
                None,
            )  # fmt: skip
            made.append((vk.vkDestroyPipelineLayout, layout))
        with driver_faults("loading SPIR-V", CompileFailed):
            shader = vk.vkCreateShaderModule(
                handle, vk.VkShaderModuleCreateInfo(codeSize=len(module), pCode=module), None
            )
            made.append((vk.vkDestroyShaderModule, shader))
        data = ffi.new("uint32_t[]", [value & 0xFFFFFFFF for _, value in constants] or [0])
        entries = [
            vk.VkSpecializationMapEntry(constantID=number, offset=4 * i, size=4)
            for i, (number, _) in enumerate(constants)
        ]
        special = vk.VkSpecializationInfo(
            mapEntryCount=len(entries), pMapEntries=entries, dataSize=4 * len(entries), pData=data
        )
        stage = vk.VkPipelineShaderStageCreateInfo(
            stage=vk.VK_SHADER_STAGE_COMPUTE_BIT, module=shader, pName=entry, pSpecializationInfo=special
        )
        told = "pipelineExecutableInfo" in device.features.driver
        info = vk.VkComputePipelineCreateInfo(
            flags=vk.VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR if told else 0, stage=stage, layout=layout
        )
        with driver_faults("building the pipeline", CompileFailed):
            pipeline = vk.vkCreateComputePipelines(handle, vk.VK_NULL_HANDLE, 1, [info], None)[0]
        made.append((vk.vkDestroyPipeline, pipeline))
        return resources(read_statistics(device, pipeline))
    finally:
        for destroy, item in reversed(made):
            destroy(handle, item, None)
