"""What a torch device can hold, as Triton uses it."""

from __future__ import annotations

from warptile import devices
from warptile.contracts import Limits, UnusableInput
from warptile.runtimes.triton.require import require_torch, require_triton

# Words are indexed with 32 bits in a kernel.
_MOST_BUFFER_BYTES = (1 << 33) - 1024
_GRID = (2**31 - 1, 65535, 65535)
_DATA_FILES = {"NVIDIA H200": "h200"}
_FP32_LANES = {"sm_80": 64, "sm_90": 128, "gfx942": 128}


def device_limits(index: int) -> Limits:
    """Limits of torch's device `index`. Bandwidth and FLOP rate from the card's data file where there is one, else from
    the clocks the driver states. Raises UnusableInput for a card before sm_80 or an unnamed architecture."""
    torch = require_torch()
    props = torch.cuda.get_device_properties(index)
    hip = torch.version.hip is not None
    architecture = props.gcnArchName.partition(":")[0] if hip else f"sm_{props.major}{props.minor}"
    if not hip and props.major < 8:
        raise UnusableInput(f"{props.name} is {architecture}; Triton kernels need sm_80 or newer")
    subgroup = getattr(props, "warp_size", 32)
    driver = require_triton().runtime.driver.active.utils.get_device_properties(index)
    clock = driver["sm_clock_rate"] * 1e3
    lanes = _FP32_LANES.get(architecture, 128)
    tflops = 2 * lanes * props.multi_processor_count * clock / 1e12
    bandwidth = 2 * driver["mem_clock_rate"] * 1e3 * driver["mem_bus_width"] / 8 / 1e9
    file = _DATA_FILES.get(props.name)
    if file is not None:
        known = devices.by_name(file, "hip" if hip else "cuda")
        bandwidth, tflops = known.read_gb_per_s, known.fp32_tflops
    optin = driver["max_shared_mem"]
    return Limits(
        name=props.name,
        runtime="hip" if hip else "cuda",
        vendor="amd" if hip else "nvidia",
        kind="gpu",
        subgroup=subgroup,
        subgroup_sizes=(subgroup,),
        shared_bytes=optin,
        shared_bytes_per_unit=getattr(props, "shared_memory_per_multiprocessor", optin),
        max_workgroup=1024,
        max_grid=_GRID,
        max_buffer_bytes=min(props.total_memory, _MOST_BUFFER_BYTES),
        units=props.multi_processor_count,
        threads_per_unit=getattr(props, "max_threads_per_multi_processor", 0),
        workgroups_per_unit=32,
        registers_per_unit=getattr(props, "regs_per_multiprocessor", 65536),
        max_registers_per_thread=256 if hip else 255,
        memory_bytes=props.total_memory,
        cache_bytes=getattr(props, "L2_cache_size", 0),
        read_gb_per_s=bandwidth,
        fp32_tflops=tflops,
        fp16_tflops=2 * tflops,
        features=frozenset({"fp16", "bf16", "int8", "int_dot", "matrix", architecture}),
        live=True,
        arrangement="quads",
        activations="fp16",
    )


def interpreter_limits() -> Limits:
    """Limits that Triton's interpreter is given: those of a small card."""
    return Limits(
        name="Triton interpreter",
        runtime="cuda",
        vendor="software",
        kind="software",
        subgroup=32,
        subgroup_sizes=(32,),
        shared_bytes=232448,
        shared_bytes_per_unit=233472,
        max_workgroup=1024,
        max_grid=_GRID,
        max_buffer_bytes=1 << 30,
        features=frozenset({"fp16", "bf16", "int8", "int_dot", "interpreter"}),
        live=True,
        arrangement="quads",
        activations="fp16",
    )
