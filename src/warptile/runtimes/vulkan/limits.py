"""Limits of an opened device, in warptile's terms."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

from warptile import devices
from warptile.contracts.limits import CooperativeMatrix, Limits
from warptile.runtimes.vulkan.binding import ffi, lib, vk
from warptile.runtimes.vulkan.device import Device
from warptile.runtimes.vulkan.faults import check
from warptile.runtimes.vulkan.memory import DEVICE_LOCAL
from warptile.runtimes.vulkan.query import properties2

_VENDORS = {
    0x1002: "amd",
    0x10DE: "nvidia",
    0x8086: "intel",
    0x13B5: "arm",
    0x5143: "qualcomm",
    0x106B: "apple",
    0x10005: "mesa",
}

_COMPONENTS = {
    0: "fp16", 1: "fp32", 2: "fp64", 3: "s8", 4: "s16", 5: "s32", 6: "s64", 7: "u8", 8: "u16", 9: "u32", 10: "u64",
    1000141000: "bf16", 1000491002: "fp8_e4m3", 1000491003: "fp8_e5m2",
}  # fmt: skip
"""VkComponentTypeKHR."""

_SUBGROUP_SCOPE = 3


def device_limits(device: Device) -> Limits:
    """What the driver reports; zero where Vulkan has no question to ask (bandwidths, registers of most cards)."""
    physical, top = device.physical, device.limits
    smallest, default, largest = _subgroups(device)
    shared = int(top.maxComputeSharedMemorySize)
    reported = Limits(
        name=physical.entry.name,
        runtime="vulkan",
        vendor=_VENDORS.get(int(physical.properties.vendorID), "unknown"),
        kind="software" if device.software else "gpu",
        subgroup=default,
        subgroup_sizes=tuple(2**i for i in range(8) if smallest <= 2**i <= largest),
        shared_bytes=shared,
        shared_bytes_per_unit=shared,
        max_workgroup=min(int(top.maxComputeWorkGroupInvocations), int(top.maxComputeWorkGroupSize[0])),
        max_grid=(
            int(top.maxComputeWorkGroupCount[0]),
            int(top.maxComputeWorkGroupCount[1]),
            int(top.maxComputeWorkGroupCount[2]),
        ),
        max_buffer_bytes=int(top.maxStorageBufferRange),
        buffer_alignment=int(top.minStorageBufferOffsetAlignment),
        memory_bytes=_memory_bytes(device),
        cache_bytes=host_cache_bytes() if device.software else 0,
        features=device.features.names,
        cooperative_matrices=_cooperative_matrices(device),
        live=True,
        **_units(device),
    )
    return with_card_data(reported)


_FROM_DATA = (
    "units", "threads_per_unit", "workgroups_per_unit", "registers_per_unit", "max_registers_per_thread",
    "register_bands", "cache_bytes", "read_gb_per_s", "fp32_tflops", "fp16_tflops",
)  # fmt: skip


def with_card_data(reported: Limits) -> Limits:
    """Fill what the driver does not say, and only that, from the data file of the very same card, if there is one.

    The same card: the device's name without what stands in parentheses ends with the file's, so that
    "RTX 4070" does not speak for "RTX 4070 Ti". `shared_bytes_per_unit` comes along where the workgroup's share agrees.
    """
    words = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\(.*?\)", "", reported.name).casefold()).strip("-")
    card = max((name for name in devices.names() if f"-{words}".endswith(f"-{name}")), key=len, default=None)
    if card is None:
        return reported
    known = devices.by_name(card, reported.runtime)
    filled = {field: getattr(known, field) for field in _FROM_DATA if not getattr(reported, field)}
    if known.shared_bytes == reported.shared_bytes:
        filled["shared_bytes_per_unit"] = known.shared_bytes_per_unit
    return dataclasses.replace(reported, **filled)


def host_cache_bytes(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Bytes of the host's last-level cache, from Linux's /sys, else from the C library; 0 where neither says."""
    levels: dict[int, int] = {}
    for index in root.glob("index*"):
        try:
            level = int((index / "level").read_text())
            text = (index / "size").read_text().strip()
            scale = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
            levels[level] = max(levels.get(level, 0), int(text.rstrip("KM")) * scale)
        except (OSError, ValueError):
            continue
    if levels:
        return levels[max(levels)]
    for name in ("SC_LEVEL3_CACHE_SIZE", "SC_LEVEL2_CACHE_SIZE"):
        asked = os.sysconf(name) if name in os.sysconf_names else 0
        if asked > 0:
            return asked
    return 0


def _subgroups(device: Device) -> tuple[int, int, int]:
    """(smallest, default, largest): the range only where a size can be asked for in a compute shader."""
    default = int(properties2(device.physical.handle, vk.VkPhysicalDeviceSubgroupProperties()).subgroupSize)
    if "subgroupSizeControl" not in device.features.driver:
        return default, default, default
    sizes = properties2(device.physical.handle, vk.VkPhysicalDeviceSubgroupSizeControlProperties())
    if not sizes.requiredSubgroupSizeStages & vk.VK_SHADER_STAGE_COMPUTE_BIT:
        return default, default, default
    return int(sizes.minSubgroupSize), default, int(sizes.maxSubgroupSize)


def _memory_bytes(device: Device) -> int:
    heaps = [device.memory.memoryHeaps[i] for i in range(device.memory.memoryHeapCount)]
    return max((int(heap.size) for heap in heaps if heap.flags & DEVICE_LOCAL), default=0)


def _units(device: Device) -> dict[str, Any]:
    """Units and what one holds, from the vendor's own property structures."""
    handle, extensions = device.physical.handle, device.physical.extensions
    if device.software:
        return {"units": len(os.sched_getaffinity(0))}
    if "VK_NV_shader_sm_builtins" in extensions:
        sm = properties2(handle, vk.VkPhysicalDeviceShaderSMBuiltinsPropertiesNV())
        return {"units": int(sm.shaderSMCount), "threads_per_unit": 32 * int(sm.shaderWarpsPerSM)}
    if "VK_AMD_shader_core_properties" in extensions:
        core = properties2(handle, vk.VkPhysicalDeviceShaderCorePropertiesAMD())
        units = core.shaderEngineCount * core.shaderArraysPerEngineCount * core.computeUnitsPerShaderArray
        waves = core.simdPerComputeUnit * core.wavefrontsPerSimd
        return {"units": int(units), "threads_per_unit": int(waves * core.wavefrontSize)}
    if "VK_ARM_shader_core_builtins" in extensions:
        arm = properties2(handle, vk.VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM())
        return {"units": int(arm.shaderCoreCount)}
    return {}


def _cooperative_matrices(device: Device) -> tuple[CooperativeMatrix, ...]:
    if "cooperativeMatrix" not in device.features.driver:
        return ()
    name = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"
    call = ffi.cast(f"PFN_{name}", lib.vkGetInstanceProcAddr(device.physical.instance, name.encode()))
    count = ffi.new("uint32_t*")
    check(call(device.physical.handle, count, ffi.NULL), "listing cooperative matrices")
    rows = ffi.new("VkCooperativeMatrixPropertiesKHR[]", count[0])
    for row in rows:
        row.sType = vk.VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR
    check(call(device.physical.handle, count, rows), "listing cooperative matrices")
    # Rows that saturate or mix operand types have no kernel that would use them.
    return tuple(
        CooperativeMatrix(int(r.MSize), int(r.NSize), int(r.KSize), _component(r.AType), _component(r.CType))
        for r in rows
        if r.scope == _SUBGROUP_SCOPE
        and not r.saturatingAccumulation
        and r.AType == r.BType
        and r.CType == r.ResultType
    )


def _component(value: int) -> str:
    return _COMPONENTS.get(int(value), f"component {int(value)}")
