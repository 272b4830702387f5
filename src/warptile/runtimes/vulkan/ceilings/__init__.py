"""Read bandwidth, fp32 rate and launch cost, measured with two small shaders."""

from __future__ import annotations

import time
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from warptile.contracts.launch import Launch, Source
from warptile.contracts.limits import Limits
from warptile.contracts.runtime import Ceilings

if TYPE_CHECKING:
    from warptile.runtimes.vulkan.runtime import VulkanRuntime

_READ_THREADS = 256
_READ_STEPS = 32
_FMA_THREADS = 64
_FMA_CHAINS = 8
_FMA_STEPS = 512
_ROUNDS = 5
_WARM_SECONDS = 0.8
"""A card that idled runs its first launches at a third of its clock."""


def measure(runtime: VulkanRuntime) -> Ceilings:
    """Best of several rounds of each, so that a busy host takes nothing off.

    read_bytes_per_s: every 16-byte word of a buffer of random data read once, the buffer larger than the cache.
    flops_per_s: 2 operations a fused multiply-add, on vec4 chains that stay in registers.
    empty_launch_s: a launch of one workgroup that stores its id and ends.
    """
    limits = runtime.limits()
    threads = min(_READ_THREADS, limits.max_workgroup)
    piece = 16 * threads * _READ_STEPS
    groups = read_bytes(limits) // piece
    width = min(groups, limits.max_grid[0])
    grid = (width, groups // width, 1)
    moved = piece * grid[0] * grid[1]
    busy = 64 if limits.kind == "software" else 16384
    flops = 2 * 4 * _FMA_CHAINS * _FMA_STEPS * _FMA_THREADS * busy

    inputs = runtime.buffer(moved)
    sink = runtime.upload(np.zeros(4, np.float32))
    try:
        runtime.write(inputs, _random_bytes(moved))
        read = runtime.compile(_source("read.comp", threads, _READ_STEPS))
        fma = runtime.compile(_source("fma.comp", _FMA_THREADS, _FMA_STEPS))
        launches = [
            Launch(read, (inputs, sink), (width,), grid),
            Launch(fma, (sink, sink), (0,), (busy, 1, 1)),
            Launch(fma, (sink, sink), (1,), (1, 1, 1)),
        ]
        warm_until = time.monotonic() + (0.0 if limits.kind == "software" else _WARM_SECONDS)
        runtime.execute(launches)
        while time.monotonic() < warm_until:
            runtime.execute(launches)
        reading, adding, empty = np.array([runtime.time(launches) for _ in range(_ROUNDS)]).min(axis=0)
    finally:
        runtime.free([inputs, sink])
    return Ceilings(moved / float(reading), flops / float(adding), float(empty))


def read_bytes(limits: Limits) -> int:
    """512 MiB on a GPU, 4 times the cache on a software device; a quarter of the memory or a buffer at most."""
    wanted = max(64 << 20, 4 * limits.cache_bytes) if limits.kind == "software" else 512 << 20
    return min(wanted, limits.max_buffer_bytes, max(limits.memory_bytes // 4, 1 << 20))


def _random_bytes(nbytes: int) -> NDArray[np.uint8]:
    """Random, because some cards compress what repeats inside one cache line; the whole repeats every 16 MiB."""
    piece = np.random.default_rng(0).integers(0, 256, min(nbytes, 16 << 20), dtype=np.uint8)
    return np.resize(piece, nbytes)


def _source(name: str, threads: int, steps: int) -> Source:
    text = files(__package__).joinpath(name).read_text()
    return Source("glsl", text, ((0, threads), (1, steps)), 2, 1, threads)
