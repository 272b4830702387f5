"""Read bandwidth, fp32 rate and launch cost, measured with two small shaders."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from warptile.contracts.launch import Launch, Source
from warptile.contracts.limits import Limits
from warptile.contracts.runtime import Ceilings

if TYPE_CHECKING:
    from warptile.runtimes.vulkan.runtime import VulkanRuntime

_READ_THREADS = 64
_READ_STEPS = 32
_FMA_THREADS = 64
_FMA_CHAINS = 8
_FMA_STEPS = 512
_ROUNDS = 7


def measure(runtime: VulkanRuntime) -> Ceilings:
    """Best of several rounds of each, so that a busy host takes nothing off.

    read_bytes_per_s: every 16-byte word of a buffer read once, the buffer larger than the cache.
    flops_per_s: 2 operations a fused multiply-add, on vec4 chains that stay in registers.
    empty_launch_s: a launch of one workgroup that stores its id and ends.
    """
    limits = runtime.limits()
    nbytes = read_bytes(limits)
    rng = np.random.default_rng(0)
    data = rng.integers(0, 1 << 32, nbytes // 4, dtype=np.uint32)
    inputs, sink = runtime.upload(data), runtime.upload(np.zeros(1024, np.float32))
    try:
        read = runtime.compile(_source("read.comp", _READ_THREADS, ((1, _READ_STEPS),), 1))
        groups = nbytes // (16 * _READ_THREADS * _READ_STEPS)
        width = min(groups, limits.max_grid[0])
        reading = Launch(read, (inputs, sink), (width,), (width, groups // width, 1))
        moved = width * (groups // width) * 16 * _READ_THREADS * _READ_STEPS

        fma = runtime.compile(_source("fma.comp", _FMA_THREADS, ((1, _FMA_STEPS),), 1))
        busy = 64 if limits.kind == "software" else 16384
        adding = Launch(fma, (sink, sink), (0,), (busy, 1, 1))
        flops = 2 * 4 * _FMA_CHAINS * _FMA_STEPS * _FMA_THREADS * busy
        empty = Launch(fma, (sink, sink), (1,), (1, 1, 1))

        runtime.execute([reading, adding, empty])
        times = np.array([runtime.time([reading, adding, empty]) for _ in range(_ROUNDS)]).min(axis=0)
    finally:
        runtime.free([inputs, sink])
    return Ceilings(moved / float(times[0]), flops / float(times[1]), float(times[2]))


def read_bytes(limits: Limits) -> int:
    """A power of two above twice the cache: 128 MiB, less where a buffer or the memory holds less."""
    most = min(limits.max_buffer_bytes, max(limits.memory_bytes // 4, 1 << 20))
    size = 128 << 20
    while size > most:
        size //= 2
    return size


def _source(name: str, threads: int, constants: tuple[tuple[int, int], ...], scalars: int) -> Source:
    text = files(__package__).joinpath(name).read_text()
    return Source("glsl", text, ((0, threads), *constants), 2, scalars, threads)
