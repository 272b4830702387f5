"""Scratch buffers: named in launches, owned by the runtime."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence, Set

from warptile.contracts.launch import Scratch
from warptile.runtimes.vulkan.guards import GuardedBuffer

KEPT = 8
"""Scratch buffers that one run does not use, kept for the next; the least recently used go first."""


class ScratchPool:
    """One guarded, poisoned buffer a (name, nbytes)."""

    def __init__(
        self, allocate: Callable[[int], GuardedBuffer], free: Callable[[Sequence[GuardedBuffer]], None]
    ) -> None:
        self._allocate = allocate
        self._free = free
        self._held: OrderedDict[Scratch, GuardedBuffer] = OrderedDict()

    def get(self, scratch: Scratch) -> GuardedBuffer:
        """The buffer of a scratch, made on first use."""
        found = self._held.get(scratch)
        if found is None:
            found = self._held[scratch] = self._allocate(scratch.nbytes)
        self._held.move_to_end(scratch)
        return found

    def keep(self, wanted: Set[Scratch]) -> None:
        """Before a run that names `wanted`: free all others but the `KEPT` used last."""
        others = [scratch for scratch in self._held if scratch not in wanted]
        self._free([self._held.pop(scratch) for scratch in others[: max(0, len(others) - KEPT)]])
