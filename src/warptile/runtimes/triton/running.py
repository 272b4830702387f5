"""What a kernel's launching function is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Launcher = Callable[..., None]
_SLAB = 1 << 20
# Counters of two launches share no line of the cache.
_APART = 32


class Scratch:
    """Zeroed counters for kernels that leave them zero again, kept for each device and stream.

    Work on one stream is in order, so its launches share counters. A launch captured into a graph gets counters of its
    own, since the graph may run on any stream: from a slab that was zeroed before any capture, so that the graph need
    not zero them, or zeroed in the graph where the slab is used up.
    """

    def __init__(self) -> None:
        self._counters: dict[tuple[str, int], torch.Tensor] = {}
        self._nothing: dict[torch.device, torch.Tensor] = {}
        self._executed: dict[torch.device, torch.Tensor] = {}
        self._slabs: dict[str, tuple[torch.Tensor, int]] = {}
        self._used: list[torch.Tensor] = []

    def counters(self, count: int, device: torch.device) -> torch.Tensor:
        """i32[>= count], zero."""
        stream = 0
        if device.type == "cuda":
            if torch.cuda.is_current_stream_capturing():
                return self._for_graph(count, device)
            self._ready(device)
            stream = torch.cuda.current_stream(device).cuda_stream
        key = (str(device), stream)
        held = self._counters.get(key)
        if held is None or held.numel() < count:
            held = self._counters[key] = torch.zeros(max(count, 4096), dtype=torch.int32, device=device)
        return held

    def _ready(self, device: torch.device) -> None:
        """A slab with room, zeroed before anything can be captured that uses it."""
        slab, used = self._slabs.get(str(device), (None, 0))
        if slab is None or used * 2 > slab.numel():
            fresh = torch.zeros(_SLAB, dtype=torch.int32, device=device)
            torch.cuda.current_stream(device).synchronize()
            if slab is not None:
                # Graphs count in it still.
                self._used.append(slab)
            self._slabs[str(device)] = fresh, 0

    def _for_graph(self, count: int, device: torch.device) -> torch.Tensor:
        slab, used = self._slabs.get(str(device), (None, 0))
        if slab is None or used + count > slab.numel():
            return torch.zeros(count, dtype=torch.int32, device=device)
        self._slabs[str(device)] = slab, used + -(-count // _APART) * _APART
        return slab[used : used + count]

    def nothing(self, device: torch.device) -> torch.Tensor:
        """A few bytes for a pointer argument that is never used."""
        held = self._nothing.get(device)
        if held is None:
            held = self._nothing[device] = torch.zeros(16, dtype=torch.int32, device=device)
        return held

    def executed(self, device: torch.device) -> torch.Tensor:
        """u32[1]: where a launch that nobody asks about writes its id."""
        held = self._executed.get(device)
        if held is None:
            held = self._executed[device] = self.nothing(device)[8:9].view(torch.uint32)
        return held


@dataclass(frozen=True)
class Run:
    """One launch of a program: its compiled builds, where it writes its id, and scratch memory."""

    builds: Sequence[Launcher]
    executed: torch.Tensor
    device: torch.device
    scratch: Scratch

    def launch(self, index: int, grid: tuple[int, int, int], *arguments: Any) -> None:
        """Enqueue build `index` on the current stream; arguments in the device function's order, constants left out."""
        self.builds[index](grid, *arguments)

    def box(self, index: int, name: str, tensor: torch.Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """The argument for box `name` of build `index`: `tensor`'s memory as shape and strides say, in elements of the
        box's type. The innermost stride is 1; elements outside are read as zero."""
        launcher: Any = self.builds[index]
        return launcher.box(name, tensor, shape, strides)

    def plane_box(self, index: int, name: str, words: torch.Tensor, start: int, end: int) -> Any:
        """The same for 32-bit words [start, end) of a packed weight, in rows of the box's width."""
        launcher: Any = self.builds[index]
        return launcher.plane_box(name, words, start, end)

    def floats(self, count: int) -> torch.Tensor:
        """fp32[count], undefined, alive until the work enqueued here has used it."""
        return torch.empty(count, dtype=torch.float32, device=self.device)

    def counters(self, count: int) -> torch.Tensor:
        """i32[count], zero; the kernel must leave it zero."""
        return self.scratch.counters(count, self.device)

    def nothing(self) -> torch.Tensor:
        """A pointer argument that is never used."""
        return self.scratch.nothing(self.device)
