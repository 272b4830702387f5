"""Scratch buffers: what one launch leaves there the next one reads, and nobody writes beside it unseen."""

from __future__ import annotations

import dataclasses

import numpy as np
from support.shaders import SCALE, groups, scale, source

from warptile.contracts import Launch, Scratch
from warptile.contracts.runtime import all_ids
from warptile.runtimes.vulkan.runtime import VulkanRuntime
from warptile.runtimes.vulkan.scratch import KEPT

N = 5000
SOURCE = dataclasses.replace(scale(3), helpers=(scale(7),))


def test_a_helper_hands_over_through_scratch(device: VulkanRuntime) -> None:
    x = np.random.default_rng(0).integers(-99, 99, N).astype(np.float32)
    a, y = device.upload(x), device.upload(np.zeros(N, np.float32))
    binary = device.compile(SOURCE)
    between = Scratch("between", x.nbytes)
    launches = [
        Launch(binary.helpers[0], (a, between), (N, 0), groups(N)),
        Launch(binary, (between, y), (N, 0), groups(N)),
    ]
    for run in (device.execute, device.time):
        device.write(y, np.zeros(N, np.float32))
        device.write(device.scratch_buffer(between), np.full(N, np.nan, np.float32))
        run(launches)
        assert device.executed_ids() == [binary.helpers[0].id, binary.id]
        np.testing.assert_array_equal(device.download(y, np.float32, (N,)), x * np.float32(21))
    assert device.guards_intact(device.scratch_buffer(between))
    device.free([a, y])


def test_a_scratch_starts_poisoned_and_shows_a_write_past_its_end(device: VulkanRuntime) -> None:
    x = device.upload(np.ones(N + 1, np.float32))
    scratch = Scratch("short", 4 * N)
    held = device.scratch_buffer(scratch)
    assert np.isnan(device.download(held, np.float32, (N,))).all()
    device.execute([Launch(device.compile(scale(2)), (x, scratch), (N + 1, 0), groups(N + 1))])
    assert not device.guards_intact(held)
    device.free([x])


def test_names_and_sizes_tell_scratches_apart_and_unused_ones_are_given_back(device: VulkanRuntime) -> None:
    x = device.upload(np.ones(8, np.float32))
    binary = device.compile(scale(2))

    def use(*scratches: Scratch) -> None:
        device.execute([Launch(binary, (x, s), (8, 0), groups(8)) for s in scratches])

    first = Scratch("first", 32)
    use(first, Scratch("second", 32), Scratch("first", 64))
    kept = device.scratch_buffer(first)
    assert kept is device.scratch_buffer(Scratch("first", 32))
    assert kept is not device.scratch_buffer(Scratch("second", 32))
    assert kept is not device.scratch_buffer(Scratch("first", 64))
    many = [Scratch(f"other {i}", 32) for i in range(2 * KEPT)]
    use(*many)
    latest = device.scratch_buffer(many[-1])
    use(Scratch("last", 32))
    assert kept.freed
    assert device.scratch_buffer(many[-1]) is latest
    device.free([x])


def test_a_binarys_identity_covers_its_helpers(device: VulkanRuntime) -> None:
    plain, helped = device.compile(scale(3)), device.compile(SOURCE)
    other = device.compile(dataclasses.replace(SOURCE, helpers=(source(SCALE, 8),)))
    assert len({plain.id, helped.id, other.id}) == 3
    assert all_ids(helped) == {helped.id, device.compile(scale(7)).id}
    assert helped.compile_seconds >= helped.helpers[0].compile_seconds
