"""Instrumented builds of small kernels: what each fault is called, where it is said to be, and what is none."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray
from support.shaders import scale

from warptile.contracts import CompileFailed, DoesNotFit, Fault, Launch, Observation, Source, UnusableInput
from warptile.runtimes.vulkan.instrument.module import Module
from warptile.runtimes.vulkan.runtime import VulkanRuntime

SIZE = 32
_HEAD = """#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 32) in;
layout(constant_id = 3) const uint WORDS = 64u;
layout(constant_id = 100) const uint BUILD_ID = 0u;
layout(push_constant) uniform Scalars {{ uint slot; uint n; }} P;
layout(std430, binding = 0) readonly buffer XBuffer {{ {x} X[]; }};
layout(std430, binding = 1) buffer YBuffer {{ {y} Y[]; }};
layout(std430, binding = 2) writeonly buffer ExecutedBuffer {{ uint executed[]; }};
shared {shared} tile[WORDS];
shared uint counter;
void main() {{
    if (gl_WorkGroupID == uvec3(0) && gl_LocalInvocationIndex == 0u) executed[P.slot] = BUILD_ID;
    const uint i = gl_LocalInvocationIndex, at = gl_GlobalInvocationID.x;
"""


def kernel(body: str, x: str = "float", y: str = "float", shared: str = "float") -> Source:
    """X[64], Y[64], shared tile[64]; two workgroups of 32."""
    text = _HEAD.format(x=x, y=y, shared=shared) + body + "\n}\n"
    return Source("glsl", text, ((3, 64),), 2, 1, SIZE)


def observe(
    device: VulkanRuntime, source: Source, instrument: str = "checked", seed: int = 0
) -> tuple[Observation, NDArray[np.float32]]:
    binary = device.compile(source, instrument)  # type: ignore[arg-type]
    x, y = device.upload(np.arange(64, dtype=np.float32)), device.guarded_buffer(256)
    try:
        seen = device.observe([Launch(binary, (x, y), (64,), (2, 1, 1))], {y: 4}, seed)
        assert device.executed_ids() == [binary.id]
        assert device.guards_intact(y), "an access outside must be left out"
        return seen, device.download(y, np.float32, (64,))
    finally:
        device.free([x, y])


def kinds(seen: Observation) -> list[str]:
    return [fault.kind for fault in seen.faults]


def first(seen: Observation, kind: str) -> Fault:
    return next(fault for fault in seen.faults if fault.kind == kind)


SOUND = {
    "a barrier between": "tile[i] = X[at]; barrier(); Y[at] = tile[31u - i];",
    "its own word": "tile[i] = X[at]; Y[at] = tile[i];",
    "read, barrier, written again": (
        "for (uint s = 0u; s < 3u; ++s) { tile[i] = X[at]; barrier(); Y[at + 64u * s * 0u] = 0.0; break; }"
    ),
    "one value by all": "tile[5] = 1.0; barrier(); Y[at] = tile[5];",
    "a subgroup's barrier": (
        "tile[i] = X[at]; subgroupMemoryBarrierShared(); subgroupBarrier(); Y[at] = tile[i ^ 1u];"
        " subgroupMemoryBarrierShared(); subgroupBarrier(); tile[i] = 2.0;"
    ),
    "atomics of all": (
        "if (i == 0u) counter = 0u; barrier(); atomicAdd(counter, 1u); barrier(); Y[at] = float(counter);"
    ),
    "a branch, a loop, a struct's end": (
        "for (uint s = i; s < 64u; s += 32u) { if (s % 2u == 0u) tile[s] = X[s]; else tile[s] = 0.0; } barrier();"
        " float sum = 0.0; for (uint s = 0u; s < 64u; ++s) sum += tile[s]; Y[at] = i < 99u && sum > 0.0 ? sum : 0.0;"
    ),
}


@pytest.mark.parametrize("body", SOUND.values(), ids=SOUND)
def test_a_sound_kernel_is_reported_sound_and_computes_the_same(device: VulkanRuntime, body: str) -> None:
    source = kernel(body)
    seen, y = observe(device, source)
    assert seen == Observation((), 0)
    x, plain = device.upload(np.arange(64, dtype=np.float32)), device.guarded_buffer(256)
    device.execute([Launch(device.compile(source), (x, plain), (64,), (2, 1, 1))])
    np.testing.assert_array_equal(y, device.download(plain, np.float32, (64,)))
    device.free([x, plain])


FAULTS = {
    "read of another's word": ("race", "tile[i] = X[at];\nY[at] = tile[i ^ 1u];", 17),
    "written after another read": ("race", "tile[i] = X[at]; barrier(); Y[at] = tile[31u - i];\ntile[i] = 1.0;", 17),
    "written after many read": (
        "race", "tile[i] = 1.0; barrier(); float v = tile[3];\nif (i == 3u) tile[3] = 2.0; Y[at] = v;", 17,
    ),
    "two values in one word": ("race", "\ntile[5] = float(i); barrier(); Y[at] = tile[5];", 17),
    "a subgroup's barrier for the workgroup's": (
        "race", "tile[i] = X[at]; subgroupMemoryBarrierShared(); subgroupBarrier();\nY[at] = tile[31u - i];", 17,
    ),
    "an atomic beside a plain write": (
        "race", "if (i == 0u) counter = 0u;\natomicAdd(counter, 1u); barrier(); Y[at] = float(counter);", 17,
    ),
    "never written": ("uninitialised", "tile[i] = X[at]; barrier();\nY[at] = tile[i + 1u];", 17),
    "read past X": ("outside", "\nY[at] = X[at + 1u];", 17),
    "written far past Y": ("outside", "Y[at] = 1.0;\nif (i == 7u) Y[0x7fffffffu] = 2.0;", 17),
    "written before Y": ("outside", "Y[at] = 1.0;\nY[int(i) - 32 - int(at)] = 2.0;", 17),
    "past a shared array": ("outside", "tile[i] = 0.0;\ntile[i + WORDS - 3u] = 1.0; Y[at] = 0.0;", 17),
    "ended before a barrier": ("barrier", "Y[at] = 1.0;\nif (i >= 16u) return; barrier(); tile[i] = 1.0;", 0),
    "a barrier for some": ("barrier", "Y[at] = 1.0;\nfor (uint s = 0u; s <= i / 16u; ++s) barrier();", 0),
    "one element by two workgroups": ("once", "\nY[at] = 1.0; if (i == 9u) Y[9] = 1.0;", 17),
    "one element by none": ("once", "if (at != 40u) Y[at] = 1.0;", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_its_line(device: VulkanRuntime, name: str) -> None:
    kind, body, line = FAULTS[name]
    seen, _ = observe(device, kernel(body))
    assert kinds(seen)[0] == kind, seen
    text = first(seen, kind).text
    assert seen.count > 0
    if line:
        # Of a race, the side that comes second tells: on another device it may be the other.
        assert f"line {line} `" in text
        assert "invocation" in text


def test_a_race_names_both_sides(device: VulkanRuntime) -> None:
    seen, _ = observe(device, kernel("tile[i] = X[at];\nY[at] = tile[i ^ 1u];"))
    text = first(seen, "race").text
    assert "reads tile[" in text
    assert "wrote in line 16 `tile[i] = X[at];`" in text


def test_an_access_outside_names_index_and_extent(device: VulkanRuntime) -> None:
    seen, y = observe(device, kernel("\nY[at] = X[at + 1u];"))
    fault = first(seen, "outside")
    assert (fault.index, fault.extent, fault.workgroup, fault.invocation) == (64, 256, (1, 0, 0), 31)
    assert "X[64]" in fault.text
    assert y[63] == 0, "what is not read is 0"


@pytest.mark.parametrize(
    ("element", "body"),
    [
        ("vec4", "{tile}[i] = vec4(i); barrier(); Y[at] = {tile}[{i}].z;"),
        ("float16_t", "{tile}[i] = float16_t(i); barrier(); Y[at] = float({tile}[{i}]);"),
        ("uint8_t", "{tile}[i] = uint8_t(i); barrier(); Y[at] = float({tile}[{i}]);"),
    ],
)
def test_words_of_any_type_are_watched_one_by_one(device: VulkanRuntime, element: str, body: str) -> None:
    """Neighbouring halves and bytes are written by different invocations; that is no race."""
    sound, _ = observe(device, kernel(body.format(tile="tile", i="(31u - i) % 16u"), shared=element))
    assert sound.faults == ()
    racy, _ = observe(device, kernel(body.format(tile="tile", i="i + 16u"), shared=element))
    assert kinds(racy) == ["uninitialised"]


def test_an_access_to_a_struct_of_arrays_in_a_buffer(device: VulkanRuntime) -> None:
    """An index past an array inside a block of the buffer is outside, though the buffer goes on."""
    struct = kernel("Y[at] = X[at / 20u].q[at % 4u];", x="Block").text
    struct = struct.replace(
        "layout(push_constant)", "struct Block { float d; float q[3]; vec4 r[3]; };\nlayout(push_constant)"
    )
    seen, _ = observe(device, dataclasses.replace(kernel(""), text=struct))
    assert kinds(seen) == ["outside"]
    assert (first(seen, "outside").index, first(seen, "outside").extent) == (3, 3)


def test_what_ran_is_known_from_the_device(device: VulkanRuntime) -> None:
    source = kernel(
        "Y[at] = 1.0; if (gl_WorkGroupID.x == 1u && i == 3u) { while (X[0] == 0.0) { if (P.n > 0u) return; } }"
    )
    seen, _ = observe(device, source)
    assert seen.faults == (), "to return early is no fault where no barrier waits"
    binary = device.compile(source, "checked")
    x, y = device.upload(np.zeros(64, np.float32)), device.guarded_buffer(256)
    stale = dataclasses.replace(device.compile(kernel("Y[at] = 1.0;"), "checked"), pipeline=binary.pipeline)
    found = device.observe([Launch(stale, (x, y), (64,), (2, 1, 1))], {})
    assert kinds(found) == ["launch"]
    assert f"ran binary {binary.id:08x}" in found.faults[0].text
    with pytest.raises(UnusableInput, match="observe"):
        device.execute([Launch(binary, (x, y), (64,), (2, 1, 1))])
    with pytest.raises(UnusableInput, match="without an instrument"):
        device.observe([Launch(device.compile(source), (x, y), (64,), (2, 1, 1))], {})
    device.free([x, y])


def test_a_delayed_build_runs_every_workgroup_once_in_another_order(device: VulkanRuntime) -> None:
    """Every name of a place is permuted alike: by `SubgroupID` an invocation must be in its own subgroup."""
    places = (
        "const bool alike = gl_WorkGroupID.x * 32u + gl_LocalInvocationID.x == at && gl_LocalInvocationID.x == i"
        " && gl_NumWorkGroups == uvec3(2, 1, 1) && gl_SubgroupID == i / gl_SubgroupSize;"
        " Y[at] = alike ? X[at] : -1.0;"
    )
    for seed in range(3):
        seen, y = observe(device, kernel(places), "delayed", seed)
        assert seen.faults == ()
        np.testing.assert_array_equal(y, np.arange(64))
    last = kernel("Y[at] = 0.0; memoryBarrierBuffer(); Y[0] = float(at);")
    assert len({float(observe(device, last, "delayed", seed)[1][0]) for seed in range(8)}) > 1


def test_shared_memory_that_nobody_wrote_is_nan_after_a_poisoning_launch(device: VulkanRuntime) -> None:
    source = kernel("Y[at] = tile[i]; if (P.n == 0u) tile[i] = 1.0;")
    x, y = device.upload(np.zeros(64, np.float32)), device.upload(np.zeros(64, np.float32))
    launch = Launch(device.compile(source), (x, y), (64,), (2, 1, 1))

    def left() -> bool:
        device.poison_shared()
        device.execute([launch])
        return bool(np.isnan(device.download(y, np.float32, (64,))).all())

    # On a busy machine one thread may run all workgroups of one launch, and another those of the next.
    assert any(left() for _ in range(8))
    device.free([x, y])


def test_loops_that_the_driver_ends_are_no_faults_of_the_kernel(device: VulkanRuntime) -> None:
    """lavapipe ends all loops of an invocation that has gone round 65,535 times: y would look unwritten."""
    body = (
        "for (uint s = 0u; s < {turns}u + P.n; ++s) tile[i] = float(s);"
        " for (uint s = i; s < 32u; s += 32u) Y[at] = tile[i];"
    )
    assert observe(device, kernel(body.format(turns=100)))[0].faults == ()
    with pytest.raises(DoesNotFit, match="loops"):
        observe(device, kernel(body.format(turns=70000)))


def test_an_unknown_instrument_and_what_is_no_module_are_refused(device: VulkanRuntime) -> None:
    with pytest.raises(UnusableInput, match="slowed"):
        device.compile(scale(2), "slowed")  # type: ignore[arg-type]
    for data in (b"", b"\0" * 24, b"\x03\x02\x23\x07" + b"\0" * 20):
        with pytest.raises(CompileFailed, match="no SPIR-V module"):
            Module.parse(data)
