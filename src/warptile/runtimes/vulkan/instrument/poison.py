"""A launch that leaves NaN in shared memory: what it does not clear, the next kernel finds where it reads too early."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from warptile.contracts.launch import Launch, Source

if TYPE_CHECKING:
    from warptile.runtimes.vulkan.runtime import VulkanRuntime

_GROUPS = 1024
"""Workgroups, each with all the shared memory it may have: several times those that the largest card runs at once."""

_INVOCATIONS = 128


class SharedPoison:
    """Fills shared memory, as fp32 and as fp16 a NaN.

    A software device keeps a shared memory in each of its threads: it gets a workgroup a thread, which wait for each
    other. Where they have waited in vain twice (there are fewer threads than processors) later ones do not, and are
    many instead. Other devices get more workgroups than they can run at once.
    """

    def __init__(self, runtime: VulkanRuntime) -> None:
        self._runtime = runtime
        limits = runtime.limits()
        self._together = max(1, limits.units) if limits.kind == "software" else 0
        self._groups = self._together or _GROUPS
        self._words = limits.shared_bytes // 4
        self._in_vain = 0
        self._met = runtime.upload(np.zeros(2, np.uint32))

    def run(self) -> None:
        """One launch."""
        binary = self._runtime.compile(poison_source(self._words))
        if self._together:
            self._runtime.write(self._met, np.zeros(2, np.uint32))
        self._runtime.execute([Launch(binary, (self._met,), (self._together,), (self._groups, 1, 1))])
        if self._together:
            self._in_vain = self._in_vain + 1 if self._runtime.download(self._met, np.uint32, (2,))[1] else 0
        if self._in_vain == 2:
            self._together, self._groups, self._in_vain = 0, 16 * self._groups, 0


def poison_source(words: int) -> Source:
    """A kernel that fills so many 32-bit words of shared memory in every workgroup."""
    text = resources.files(__package__).joinpath("poison.comp").read_text(encoding="utf-8")
    return Source("glsl", text, ((0, _INVOCATIONS), (1, words)), 1, 1, _INVOCATIONS)
