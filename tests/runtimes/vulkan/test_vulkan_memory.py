"""Buffers: cut from blocks and used again, guarded so that a stray write or read cannot stay unseen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.shaders import groups, scale, source

from warptile.contracts import Launch
from warptile.runtimes.vulkan.guards import CANARY_WORD, POISON_WORD, pattern
from warptile.runtimes.vulkan.memory import BLOCK_BYTES, DEVICE_LOCAL
from warptile.runtimes.vulkan.runtime import VulkanRuntime


@pytest.fixture(params=["mapped", "staged"])
def either(device: VulkanRuntime, request: pytest.FixtureRequest) -> Iterator[VulkanRuntime]:
    """The device with its memory mapped, and as a discrete card has it: reached through copies only."""
    before = device.memory.flags
    if request.param == "staged":
        device.memory.use(DEVICE_LOCAL)
    yield device
    device.memory.use(before)


def test_canary_and_poison_are_nan_in_every_float_type() -> None:
    for word in (CANARY_WORD, POISON_WORD):
        data = np.array([word], "<u4")
        assert np.isnan(data.view(np.float32)).all()
        assert np.isnan(data.view(np.float16)).all()
        bfloat = np.array([int(half) << 16 for half in data.view(np.uint16)], np.uint32)
        assert np.isnan(bfloat.view(np.float32)).all()
    assert CANARY_WORD != POISON_WORD


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("nbytes", [4, 6, 4096, 100_004])
def test_a_fresh_guarded_buffer_is_poison_inside_and_intact(either: VulkanRuntime, nbytes: int, at_end: bool) -> None:
    buffer = either.guarded_buffer(nbytes, at_end)
    assert buffer.nbytes == nbytes
    got = either.download(buffer, np.uint8, (nbytes,))
    np.testing.assert_array_equal(got, pattern(POISON_WORD, buffer.offset, buffer.offset + nbytes))
    assert either.guards_intact(buffer)
    if at_end:
        assert buffer.offset + nbytes == buffer.block.size
    assert buffer.offset % either.limits().buffer_alignment == 0
    either.free([buffer])


def test_what_a_kernel_did_not_write_is_still_poison(either: VulkanRuntime) -> None:
    x, y = either.upload(np.ones(100, np.float32)), either.guarded_buffer(400)
    either.execute([Launch(either.compile(scale(2)), (x, y), (97, 0), groups(97))])
    got = either.download(y, np.float32, (100,))
    assert (got[:97] == 2).all()
    assert (got[97:].view(np.uint32) == POISON_WORD).all()
    either.free([x, y])


@pytest.mark.parametrize("beyond", [0, 1, 1000])
def test_one_element_written_behind_the_payload_breaks_the_guard(either: VulkanRuntime, beyond: int) -> None:
    x, y = either.upload(np.ones(64, np.float32)), either.guarded_buffer(400)
    stray = either.compile(source(f"if (i == 0u) Y[100u + {beyond}u] = X[0];"))
    either.execute([Launch(stray, (x, y), (1, 0), (1, 1, 1))])
    assert not either.guards_intact(y)
    assert (either.download(y, np.uint32, (100,)) == POISON_WORD).all()
    either.free([x, y])


@pytest.mark.parametrize("at_end", [False, True])
def test_a_write_in_front_of_the_payload_breaks_the_guard(either: VulkanRuntime, at_end: bool) -> None:
    # No index reaches in front of a binding, so a host write stands in for a kernel that was given a wrong offset.
    buffer = either.guarded_buffer(64, at_end)
    either.memory.write(buffer.block, buffer.offset - 1, np.zeros(1, np.uint8))
    assert not either.guards_intact(buffer)
    either.free([buffer])


def test_a_read_behind_the_payload_poisons_what_is_computed_from_it(either: VulkanRuntime) -> None:
    x, y = either.guarded_buffer(400), either.guarded_buffer(404)
    either.write(x, np.ones(100, np.float32))
    either.execute([Launch(either.compile(scale(2)), (x, y), (101, 0), groups(101))])
    got = either.download(y, np.float32, (101,))
    assert (got[:100] == 2).all()
    assert np.isnan(got[100])
    either.free([x, y])


def test_nothing_behind_a_payload_at_the_end_can_be_reached(either: VulkanRuntime) -> None:
    x, y = either.upload(np.ones(64, np.float32)), either.guarded_buffer(400, at_end=True)
    either.execute([Launch(either.compile(scale(4)), (x, y), (64, 0), groups(64))])
    assert (either.download(y, np.float32, (100,))[:64] == 4).all()
    assert either.guards_intact(y)
    either.free([x, y])


def test_small_buffers_share_a_block_and_freed_room_is_used_again(device: VulkanRuntime) -> None:
    first = [device.upload(np.full(1000, i, np.int32)) for i in range(20)]
    held = device.memory.bytes_held
    assert len({id(buffer.block) for buffer in first}) == 1
    offsets = {buffer.offset for buffer in first[5:15]}
    device.free(first[5:15])
    second = [device.upload(np.full(1000, 100 + i, np.int32)) for i in range(10)]
    assert {buffer.offset for buffer in second} == offsets
    assert device.memory.bytes_held == held
    for i in (*range(5), *range(15, 20)):
        assert (device.download(first[i], np.int32, (1000,)) == i).all()
    device.free([*first[:5], *first[15:], *second])


def test_a_large_buffer_has_its_own_block_that_goes_back_when_freed(device: VulkanRuntime) -> None:
    held = device.memory.bytes_held
    large = device.upload(np.zeros(BLOCK_BYTES, np.uint8))
    assert device.memory.bytes_held >= held + BLOCK_BYTES
    device.free([large])
    assert device.memory.bytes_held == held


def test_random_allocation_never_overlaps_and_leaves_nothing(device: VulkanRuntime) -> None:
    rng = np.random.default_rng(5)
    held = device.memory.bytes_held
    alive: dict[int, object] = {}
    for step in range(300):
        if alive and rng.random() < 0.45:
            key = int(rng.choice(list(alive)))
            buffer = alive.pop(key)
            size = buffer.nbytes  # type: ignore[attr-defined]
            assert (device.download(buffer, np.uint8, (size,)) == key % 251).all()  # type: ignore[arg-type]
            device.free([buffer])  # type: ignore[list-item]
        else:
            size = int(rng.integers(1, 200_000))
            alive[step] = device.upload(np.full(size, step % 251, np.uint8))
    device.free(list(alive.values()))  # type: ignore[arg-type]
    assert device.memory.bytes_held == held


def test_more_bytes_than_the_staging_block_holds(either: VulkanRuntime) -> None:
    data = np.random.default_rng(0).integers(0, 256, BLOCK_BYTES + 12_345, dtype=np.uint8)
    buffer = either.upload(data)
    np.testing.assert_array_equal(either.download(buffer, np.uint8, data.shape), data)
    either.free([buffer])
