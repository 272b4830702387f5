"""What a kernel, the proof and the race rely on: bytes arrive, order holds, ids and times are the device's own."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest
from support.shaders import ADD, SPIN, groups, scale, source

from warptile.contracts import CompileFailed, DoesNotFit, Launch, OutOfMemory, UnusableInput
from warptile.places import Places
from warptile.runtimes import open_device
from warptile.runtimes.vulkan.device import check_timestamps
from warptile.runtimes.vulkan.runtime import VulkanRuntime
from warptile.runtimes.vulkan.submit import SLOTS


@pytest.mark.parametrize("n", [1, 3, 63, 64, 65, 4097, 100_003])
def test_ragged_sizes_go_up_through_a_kernel_and_back(device: VulkanRuntime, n: int) -> None:
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    a, b = device.upload(x), device.guarded_buffer(x.nbytes)
    device.execute([Launch(device.compile(scale(3)), (a, b), (n, 0), groups(n))])
    np.testing.assert_array_equal(device.download(b, np.float32, (n,)), x * np.float32(3))
    assert device.guards_intact(b)
    device.free([a, b])


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.int64, ">i4"])
def test_odd_byte_counts_and_strided_arrays_come_back_unchanged(device: VulkanRuntime, dtype: str) -> None:
    data = np.arange(77).astype(dtype).reshape(7, 11)[:, ::2]
    buffer = device.upload(data)
    assert buffer.nbytes == data.nbytes
    np.testing.assert_array_equal(device.download(buffer, dtype, data.shape), data)
    device.free([buffer])


def test_write_replaces_only_the_bytes_it_brings(device: VulkanRuntime) -> None:
    buffer = device.upload(np.arange(5, dtype=np.int32))
    device.write(buffer, np.array([9, 8], np.int32))
    assert device.download(buffer, np.int32, (5,)).tolist() == [9, 8, 2, 3, 4]
    with pytest.raises(ValueError, match="do not fit"):
        device.write(buffer, np.zeros(6, np.int32))
    with pytest.raises(ValueError, match="asked of"):
        device.download(buffer, np.int32, (6,))
    device.free([buffer])


def test_each_launch_sees_what_the_one_before_it_wrote(device: VulkanRuntime) -> None:
    n = 100_000
    one, total = device.upload(np.ones(n, np.float32)), device.upload(np.zeros(n, np.float32))
    add = device.compile(source(ADD))
    device.execute([Launch(add, (one, total), (n, 0), groups(n))] * 37)
    assert (device.download(total, np.float32, (n,)) == 37).all()
    device.free([one, total])


def test_a_buffer_dropped_without_being_freed_never_lends_its_binding_to_the_next(device: VulkanRuntime) -> None:
    scaled = device.compile(scale(2))
    for value in range(60):
        x = device.upload(np.full(64, value, np.float32))
        y = device.guarded_buffer(256)
        device.execute([Launch(scaled, (x, y), (64, 0), (1, 1, 1))])
        assert (device.download(y, np.float32, (64,)) == 2 * value).all()
        del x, y


def test_ids_tell_which_build_ran_in_which_slot(device: VulkanRuntime) -> None:
    x, y = device.upload(np.ones(8, np.float32)), device.guarded_buffer(32)
    two, five = device.compile(scale(2)), device.compile(scale(5))
    assert two.id != five.id
    assert 0 not in (two.id, five.id)

    def launch(binary: object, grid: tuple[int, int, int]) -> Launch:
        return Launch(binary, (x, y), (8, 0), grid)  # type: ignore[arg-type]

    device.execute([launch(two, (1, 1, 1)), launch(five, (0, 1, 1)), launch(five, (1, 1, 1))])
    assert device.executed_ids() == [two.id, 0, five.id]
    assert (device.download(y, np.float32, (8,)) == 5).all()
    device.execute([launch(five, (1, 0, 1))])
    assert device.executed_ids() == [0]
    device.execute([])
    assert device.executed_ids() == []
    device.free([x, y])


def test_more_launches_than_one_submission_holds(device: VulkanRuntime) -> None:
    x, y = device.upload(np.ones(8, np.float32)), device.upload(np.zeros(8, np.float32))
    add = device.compile(source(ADD))
    count = SLOTS + 3
    seconds = device.time([Launch(add, (x, y), (8, 0), (1, 1, 1))] * count)
    assert len(seconds) == count
    assert device.executed_ids() == [add.id] * count
    assert device.download(y, np.float32, (8,)).tolist() == [count] * 8
    device.free([x, y])


def test_a_specialization_constant_changes_the_result_and_the_identity(device: VulkanRuntime) -> None:
    assert device.compile(scale(7)) is device.compile(scale(7))
    assert device.compile(scale(7)).key != device.compile(scale(8)).key
    assert device.compile(scale(7)).key != device.compile(source(ADD, 7)).key
    assert device.compile(scale(7)).key != device.compile(scale(7, workgroup=32)).key


def test_device_time_is_the_time_that_passes(device: VulkanRuntime) -> None:
    # The device cannot take longer than the call around it, and for a launch of 0.1 s the call does little else: in
    # one of a few tries nothing else on the host may come between, and then nearly all of it is the device's.
    # More workgroups make it longer, not more steps: llvmpipe ends any loop after 65535.
    x, y = device.upload(np.ones(4, np.float32)), device.upload(np.zeros(4096, np.float32))
    spin = device.compile(source(SPIN))
    wide, shares = 64, []
    while len(shares) < 5 and max(shares, default=0.0) < 0.9:
        launch = Launch(spin, (x, y), (4096, 20_000), (wide, 1, 1))
        before = time.perf_counter()
        (seconds,) = device.time([launch])
        wall = time.perf_counter() - before
        assert 0 < seconds <= wall
        if seconds < 0.1 and wide < device.limits().max_grid[0] // 4:
            wide *= 4
        else:
            shares.append(seconds / wall)
    assert max(shares) >= 0.9
    device.free([x, y])


def test_times_stand_in_the_order_of_the_launches(device: VulkanRuntime) -> None:
    x, y = device.upload(np.ones(4, np.float32)), device.upload(np.zeros(4096, np.float32))
    spin = device.compile(source(SPIN))

    def launch(steps: int) -> Launch:
        return Launch(spin, (x, y), (4096, steps), groups(4096))

    short, long, again = device.time([launch(1), launch(60_000), launch(1)])
    assert long > 10 * max(short, again)
    device.free([x, y])


def test_the_first_launch_pays_for_no_compilation(device: VulkanRuntime) -> None:
    # The compiler's time is in compile_seconds. A lazy driver would put it into the first timing instead.
    body = "".join(f"a{j} = fma(a{j}, a{(j * 7 + 3) % 48}, a{(j * 5 + 1) % 48});" for j in range(48))
    text = "".join(f"float a{j} = X[(i + {j}u) % P.n];" for j in range(48))
    text += f"for (uint s = 0u; s < P.steps; ++s) {{ {body} }} Y[i] = {' + '.join(f'a{j}' for j in range(48))}"
    text += f" + {time.time_ns()}.0;"  # never seen by the driver's own disk cache
    binary = device.compile(source(text))
    x, y = device.upload(np.ones(64, np.float32)), device.upload(np.zeros(64, np.float32))
    first = device.time([Launch(binary, (x, y), (64, 1), (1, 1, 1))])[0]
    assert first < binary.compile_seconds / 4
    device.free([x, y])


def test_a_compile_error_is_one_line_with_its_place(device: VulkanRuntime) -> None:
    with pytest.raises(CompileFailed) as caught:
        device.compile(source("this is not GLSL;"))
    line = str(caught.value)
    assert "\n" not in line
    assert "line 12" in line
    assert "/tmp" not in line
    with pytest.raises(CompileFailed, match="glsl, not triton"):
        device.compile(dataclasses.replace(scale(2), language="triton"))


def test_what_the_device_lacks_is_named(device: VulkanRuntime) -> None:
    with pytest.raises(DoesNotFit, match="lacks coopmat_of_another_world"):
        device.compile(scale(2, features=frozenset({"coopmat_of_another_world"})))
    with pytest.raises(DoesNotFit, match="workgroup"):
        device.compile(scale(2, workgroup=device.limits().max_workgroup * 2))
    with pytest.raises(DoesNotFit, match="subgroup"):
        device.compile(scale(2, subgroup=1 << 20))
    with pytest.raises(DoesNotFit, match="push constants"):
        device.compile(dataclasses.replace(scale(2), scalars=4096))


def test_the_devices_own_subgroup_size_can_be_asked_for(device: VulkanRuntime) -> None:
    binary = device.compile(scale(2, subgroup=device.limits().subgroup))
    x, y = device.upload(np.ones(8, np.float32)), device.guarded_buffer(32)
    device.execute([Launch(binary, (x, y), (8, 0), (1, 1, 1))])
    assert (device.download(y, np.float32, (8,)) == 2).all()
    device.free([x, y])


def test_a_grid_or_buffer_over_the_limit_does_not_fit(device: VulkanRuntime) -> None:
    x, y = device.upload(np.ones(8, np.float32)), device.guarded_buffer(32)
    binary = device.compile(scale(2))
    too_many = (device.limits().max_grid[0] + 1, 1, 1)
    with pytest.raises(DoesNotFit, match="grid"):
        device.execute([Launch(binary, (x, y), (8, 0), too_many)])
    with pytest.raises(DoesNotFit, match="buffer"):
        device.guarded_buffer(device.limits().max_buffer_bytes + 1)
    device.free([x, y])


def test_memory_that_is_not_there_is_out_of_memory_and_the_device_goes_on(device: VulkanRuntime) -> None:
    with pytest.raises(OutOfMemory, match="allocating"):
        device.memory.own_block(device.limits().memory_bytes * 2)
    x = device.upload(np.arange(4, dtype=np.int32))
    assert device.download(x, np.int32, (4,)).tolist() == [0, 1, 2, 3]
    device.free([x])


def test_misuse_is_an_error_not_a_crash(device: VulkanRuntime) -> None:
    x, y = device.upload(np.ones(8, np.float32)), device.upload(np.ones(8, np.float32))
    binary = device.compile(scale(2))
    with pytest.raises(ValueError, match="a launch of 1 buffers"):
        device.execute([Launch(binary, (x,), (8, 0), (1, 1, 1))])
    with pytest.raises(ValueError, match="guards"):
        device.guards_intact(x)
    launch = Launch(binary, (x, y), (8, 0), (1, 1, 1))
    device.execute([launch])
    device.free([y])
    with pytest.raises(ValueError, match="after it was freed"):
        device.execute([launch])
    with pytest.raises(ValueError, match="after it was freed"):
        device.free([y])
    device.free([x])


def test_limits_and_identity_are_the_devices(device: VulkanRuntime) -> None:
    limits, identity = device.limits(), device.identity()
    assert limits.name == identity.device
    assert (limits.kind, limits.live, limits.runtime) == ("software", True, "vulkan")
    assert limits.subgroup in limits.subgroup_sizes
    assert limits.cache_bytes > 0
    assert limits.units > 0
    assert limits.max_buffer_bytes >= 1 << 27  # the least Vulkan allows
    assert "glslang" in identity.compiler
    assert identity.driver


def test_ceilings_are_measured_once(device: VulkanRuntime) -> None:
    first = device.ceilings()
    assert device.ceilings() is first
    assert first.read_bytes_per_s > 1e8
    assert first.flops_per_s > 1e9
    assert 0 < first.empty_launch_s < 0.1


def test_no_statistics_where_the_driver_reports_none(device: VulkanRuntime) -> None:
    binary = device.compile(scale(2))
    reported = device.resources(binary)
    assert reported is None or reported.raw


def test_a_queue_without_timestamps_is_refused() -> None:
    with pytest.raises(UnusableInput, match="timestampValidBits is 0"):
        check_timestamps("vulkan:3", 0)
    check_timestamps("vulkan:3", 36)


def test_closing_twice_is_harmless(software_device: str, places: Places) -> None:
    runtime = open_device(software_device, places)
    runtime.close()
    runtime.close()


def test_a_closed_device_refuses_instead_of_crashing(software_device: str, places: Places) -> None:
    runtime = open_device(software_device, places)
    buffer, binary = runtime.upload(np.zeros(4, np.float32)), runtime.compile(scale(2))
    runtime.close()
    launch = Launch(binary, (buffer, buffer), (4, 0), groups(4))
    for use in (
        lambda: runtime.upload(np.zeros(4, np.float32)),
        lambda: runtime.write(buffer, np.zeros(1, np.float32)),
        lambda: runtime.download(buffer, np.float32, (4,)),
        lambda: runtime.guarded_buffer(16),
        lambda: runtime.compile(scale(3)),
        lambda: runtime.execute([launch]),
        lambda: runtime.time([launch]),
        lambda: runtime.free([buffer]),
    ):
        with pytest.raises(UnusableInput, match="was closed"):
            use()
