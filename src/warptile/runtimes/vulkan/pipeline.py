"""Compute pipelines: specialization, subgroup size, the driver's pipeline cache on disk."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warptile.contracts.errors import CompileFailed, DoesNotFit
from warptile.contracts.launch import Source
from warptile.contracts.limits import Limits
from warptile.contracts.runtime import Instrument
from warptile.kernels.vulkan.abi import BUILD_ID_CONSTANT
from warptile.runtimes.files import read_checked, write_checked
from warptile.runtimes.keys import binary_id
from warptile.runtimes.vulkan.binding import ffi, lib, vk
from warptile.runtimes.vulkan.device import Device
from warptile.runtimes.vulkan.faults import check, driver_faults
from warptile.runtimes.vulkan.instrument import Instrumented, instrumented
from warptile.runtimes.vulkan.spirv import Glslang

_SLOW_SECONDS = 0.25
"""A build slower than this is saved to disk at once: the process may be ended at its deadline."""


@dataclass(frozen=True, eq=False)
class Interface:
    """Descriptor set layout and pipeline layout for a number of bindings (the runtime's included) and scalars."""

    set_layout: Any
    layout: Any
    bindings: int
    push_bytes: int


@dataclass(frozen=True, eq=False)
class VulkanBinary:
    """A compute pipeline. compile_seconds: what the driver took, machine code and helpers included.

    instrumented: what an instrument put in, None without one.
    """

    key: str
    source: Source
    pipeline: Any
    interface: Interface
    compile_seconds: float
    helpers: tuple[VulkanBinary, ...] = ()
    instrumented: Instrumented | None = None

    @property
    def id(self) -> int:
        """The 32 bits the kernel writes when it runs."""
        return binary_id(self.key)


class Pipelines:
    """Builds pipelines. finish: called with each new pipeline so that a lazy driver emits its machine code."""

    def __init__(self, device: Device, limits: Limits, cache: Path, identity: str) -> None:
        self._device = device
        self._limits = limits
        self.glslang = Glslang(cache / "spirv", device.physical.api)
        self._interfaces: dict[tuple[int, int, bool], Interface] = {}
        self._lock = threading.Lock()
        self._pipelines: list[Any] = []
        self._path = cache / "pipelines" / f"{hashlib.sha256(identity.encode()).hexdigest()}.bin"
        self._saved = b""
        self._cache = self._open_cache()

    def interface(self, bindings: int, scalars: int, noted: bool = False) -> Interface:
        """The layouts for `bindings` storage buffers, the executed ids and 1 + `scalars` push-constant words.

        noted: an instrument's notes are bound last.
        """
        key = (bindings, scalars, noted)
        with self._lock:
            found = self._interfaces.get(key)
            if found is None:
                found = self._interfaces[key] = self._new_interface(bindings + 1 + noted, 4 * (1 + scalars))
            return found

    def build(
        self, key: str, source: Source, finish: Callable[[VulkanBinary], None], instrument: Instrument = "none"
    ) -> VulkanBinary:
        """Compile `source`; its build id becomes specialization constant 100. Raises CompileFailed, DoesNotFit."""
        self._check(source, 1 if instrument == "none" else 2)
        words = self.glslang.compile(source.text, lines=instrument != "none")
        added = None
        if instrument != "none":
            features = self._limits.features
            added = instrumented(source, instrument, words, binary_id(key), self.glslang.compile, features)
            words = added.module
            self.glslang.validate(words)
        interface = self.interface(source.bindings, source.scalars, added is not None)
        with driver_faults("loading SPIR-V", CompileFailed):
            module = vk.vkCreateShaderModule(
                self._device.handle, vk.VkShaderModuleCreateInfo(codeSize=len(words), pCode=words), None
            )
        try:
            start = time.perf_counter()
            pipeline = self._create(key, source, module, interface)
            finish(VulkanBinary(key, source, pipeline, interface, 0.0, instrumented=added))
            seconds = time.perf_counter() - start
        finally:
            vk.vkDestroyShaderModule(self._device.handle, module, None)
        if seconds > _SLOW_SECONDS:
            self.save()
        return VulkanBinary(key, source, pipeline, interface, seconds, instrumented=added)

    def save(self) -> None:
        """Write the driver's pipeline cache to disk where it has changed."""
        size = ffi.new("size_t*")
        check(lib.vkGetPipelineCacheData(self._device.handle, self._cache, size, ffi.NULL), "reading the cache")
        data = ffi.new("uint8_t[]", size[0])
        check(lib.vkGetPipelineCacheData(self._device.handle, self._cache, size, data), "reading the cache")
        content = bytes(ffi.buffer(data, size[0]))
        with self._lock:
            if content and content != self._saved:
                write_checked(self._path, content)
                self._saved = content

    def close(self) -> None:
        """Destroy pipelines and layouts."""
        device = self._device.handle
        for pipeline in self._pipelines:
            vk.vkDestroyPipeline(device, pipeline, None)
        for interface in self._interfaces.values():
            vk.vkDestroyPipelineLayout(device, interface.layout, None)
            vk.vkDestroyDescriptorSetLayout(device, interface.set_layout, None)
        vk.vkDestroyPipelineCache(device, self._cache, None)

    def _check(self, source: Source, own: int) -> None:
        """own: bindings of the runtime beside the kernel's."""
        limits = self._limits
        if source.language != "glsl":
            raise CompileFailed(f"the Vulkan runtime compiles glsl, not {source.language}")
        missing = sorted(source.features - limits.features)
        if missing:
            raise DoesNotFit(
                "the device has the features the kernel needs", f"{limits.name} lacks {', '.join(missing)}"
            )
        if source.workgroup > limits.max_workgroup:
            raise DoesNotFit("workgroup <= the device's most", f"{source.workgroup} > {limits.max_workgroup}")
        if source.subgroup is not None and source.subgroup not in limits.subgroup_sizes:
            sizes = ", ".join(map(str, limits.subgroup_sizes))
            raise DoesNotFit("subgroup is a size the device can be asked for", f"{source.subgroup} not in {sizes}")
        bound, slots = source.bindings + own, int(self._device.limits.maxPerStageDescriptorStorageBuffers)
        if bound > slots:
            raise DoesNotFit("storage buffers <= the device's most a stage", f"{bound} > {slots}")
        words, most = 1 + source.scalars, int(self._device.limits.maxPushConstantsSize) // 4
        if words > most:
            raise DoesNotFit("push constants <= the device's most", f"{words} words > {most}")

    def _create(self, key: str, source: Source, module: Any, interface: Interface) -> Any:
        constants = (*source.constants, (BUILD_ID_CONSTANT, binary_id(key)))
        data = ffi.new("uint32_t[]", [value & 0xFFFFFFFF for _, value in constants])
        entries = [
            vk.VkSpecializationMapEntry(constantID=c, offset=4 * i, size=4) for i, (c, _) in enumerate(constants)
        ]
        special = vk.VkSpecializationInfo(
            mapEntryCount=len(entries), pMapEntries=entries, dataSize=4 * len(entries), pData=data
        )
        wanted, subgroup = ffi.NULL, None
        if source.subgroup is not None and len(self._limits.subgroup_sizes) > 1:
            subgroup = vk.VkPipelineShaderStageRequiredSubgroupSizeCreateInfo(requiredSubgroupSize=source.subgroup)
            wanted = ffi.cast("void*", ffi.addressof(subgroup))
        stage = vk.VkPipelineShaderStageCreateInfo(
            pNext=wanted, stage=vk.VK_SHADER_STAGE_COMPUTE_BIT, module=module, pName="main", pSpecializationInfo=special
        )
        statistics = "pipelineExecutableInfo" in self._device.features.driver
        checked, robust = ffi.NULL, None
        if "robust" in source.features:
            robust = vk.VkPipelineRobustnessCreateInfoEXT(
                storageBuffers=vk.VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_ROBUST_BUFFER_ACCESS_EXT
            )
            checked = ffi.cast("void*", ffi.addressof(robust))
        info = vk.VkComputePipelineCreateInfo(
            pNext=checked,
            flags=vk.VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR if statistics else 0,
            stage=stage,
            layout=interface.layout,
        )
        with driver_faults("building the pipeline", CompileFailed):
            pipeline = vk.vkCreateComputePipelines(self._device.handle, self._cache, 1, [info], None)[0]
        self._pipelines.append(pipeline)
        return pipeline

    def _new_interface(self, bindings: int, push_bytes: int) -> Interface:
        device = self._device.handle
        slots = [
            vk.VkDescriptorSetLayoutBinding(
                binding=i, descriptorType=vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, descriptorCount=1,
                stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT,
            )
            for i in range(bindings)
        ]  # fmt: skip
        push = vk.VkPushConstantRange(stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT, offset=0, size=push_bytes)
        with driver_faults("laying out the kernel's bindings"):
            set_layout = vk.vkCreateDescriptorSetLayout(
                device, vk.VkDescriptorSetLayoutCreateInfo(bindingCount=bindings, pBindings=slots), None
            )
            layout = vk.vkCreatePipelineLayout(
                device,
                vk.VkPipelineLayoutCreateInfo(
                    setLayoutCount=1, pSetLayouts=[set_layout], pushConstantRangeCount=1, pPushConstantRanges=[push]
                ),
                None,
            )
        return Interface(set_layout, layout, bindings, push_bytes)

    def _open_cache(self) -> Any:
        content = read_checked(self._path) or b""
        self._saved = content
        data = ffi.from_buffer(content) if content else ffi.NULL
        with driver_faults("opening the pipeline cache"):
            return vk.vkCreatePipelineCache(
                self._device.handle, vk.VkPipelineCacheCreateInfo(initialDataSize=len(content), pInitialData=data), None
            )
