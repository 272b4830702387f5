"""What the driver's compiler reports for a pipeline (VK_KHR_pipeline_executable_properties)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warptile.contracts.price import Resources
from warptile.runtimes.vulkan.binding import ffi, lib, vk
from warptile.runtimes.vulkan.device import Device
from warptile.runtimes.vulkan.faults import check

_LOCAL_MEMORY_MASK = 0xFFFFFFFF


def read_statistics(device: Device, pipeline: Any) -> tuple[tuple[int, tuple[tuple[str, float], ...]], ...]:
    """(subgroup size, ((name, value), ...)) of each of the pipeline's executables. Empty without the extension."""
    if "pipelineExecutableInfo" not in device.features.driver:
        return ()
    executables = _listed(
        device,
        "vkGetPipelineExecutablePropertiesKHR",
        "VkPipelineExecutablePropertiesKHR",
        vk.VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR,
        vk.VkPipelineInfoKHR(pipeline=pipeline),
    )
    found = []
    for index, executable in enumerate(executables):
        rows = _listed(
            device,
            "vkGetPipelineExecutableStatisticsKHR",
            "VkPipelineExecutableStatisticKHR",
            vk.VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR,
            vk.VkPipelineExecutableInfoKHR(pipeline=pipeline, executableIndex=index),
        )
        found.append((int(executable.subgroupSize), tuple((_text(r.name), _value(r)) for r in rows)))
    return tuple(found)


def resources(executables: Sequence[tuple[int, Sequence[tuple[str, float]]]]) -> Resources | None:
    """The statistics in warptile's terms; None where there are none.

    NVIDIA: Register Count, Local Memory Size (the low 32 bits are bytes a thread spilled), Stack Size, Shared
    Memory Size. RADV: VGPRs, Spilled VGPRs, LDS size, Scratch size (an array that overflows the registers
    shows there with no spilled VGPR). ANV and Turnip name a few more; what is not known stays in `raw`.
    """
    if not executables:
        return None
    raw = tuple((name, value) for _, rows in executables for name, value in rows)
    named: dict[str, float] = {}
    for name, value in raw:
        key = name.casefold()
        named[key] = max(value, named.get(key, value))

    def first(*names: str) -> int | None:
        return next((int(named[name]) for name in names if name in named), None)

    local = first("local memory size")
    spilled = first("spilled vgprs", "spill count")
    scratch = first("scratch size", "scratch memory size", "stack size")
    return Resources(
        registers=first("register count", "vgprs", "full registers"),
        spilled_registers=spilled,
        spill_bytes=local & _LOCAL_MEMORY_MASK if local is not None else None if spilled is None else 4 * spilled,
        shared_bytes=first("shared memory size", "lds size", "workgroup memory size"),
        scratch_bytes=scratch,
        subgroup=executables[0][0] or None,
        code_bytes=first("binary size", "code size"),
        raw=raw,
    )


def _listed(device: Device, function: str, structure: str, tag: int, info: Any) -> Any:
    address = lib.vkGetDeviceProcAddr(device.handle, function.encode())
    call = ffi.cast(f"PFN_{function}", address)
    count = ffi.new("uint32_t*")
    pointer = ffi.addressof(info)
    check(call(device.handle, pointer, count, ffi.NULL), "reading pipeline statistics")
    rows = ffi.new(f"{structure}[]", count[0])
    for row in rows:
        row.sType = tag
    check(call(device.handle, pointer, count, rows), "reading pipeline statistics")
    return rows


def _text(name: Any) -> str:
    return str(ffi.string(name).decode(errors="replace"))


def _value(row: Any) -> float:
    return float((row.value.b32, row.value.i64, row.value.u64, row.value.f64)[row.format])
