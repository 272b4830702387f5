"""What a kernel's launching function is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Launcher = Callable[..., None]


RESERVE = 1 << 18
"""Counters kept for launches in graphs, a device."""


class Scratch:
    """Zeroed counters for kernels that leave them zero again, kept for each device and stream.

    Work on one stream is in order, so its launches share counters. While a stream is captured into a graph, each launch
    gets counters of its own: from a reserve that was zeroed before the capture, else zeroed in the graph, at each
    replay, at the price of a launch. What a graph took is not given back.
    """

    def __init__(self) -> None:
        self._counters: dict[tuple[str, int], torch.Tensor] = {}
        self._reserves: dict[str, tuple[torch.Tensor, int]] = {}
        self._nothing: dict[str, torch.Tensor] = {}

    def counters(self, count: int, device: torch.device) -> torch.Tensor:
        """i32[>= count], zero."""
        stream = 0
        if device.type == "cuda":
            if torch.cuda.is_current_stream_capturing():
                return self._reserved(count, device)
            if str(device) not in self._reserves:
                reserve = torch.zeros(RESERVE, dtype=torch.int32, device=device)
                torch.cuda.current_stream(device).synchronize()
                self._reserves[str(device)] = (reserve, 0)
            stream = torch.cuda.current_stream(device).cuda_stream
        key = (str(device), stream)
        held = self._counters.get(key)
        if held is None or held.numel() < count:
            held = self._counters[key] = torch.zeros(max(count, 4096), dtype=torch.int32, device=device)
        return held

    def _reserved(self, count: int, device: torch.device) -> torch.Tensor:
        reserve, taken = self._reserves.get(str(device), (None, 0))
        if reserve is None or taken + count > RESERVE:
            return torch.zeros(count, dtype=torch.int32, device=device)
        self._reserves[str(device)] = (reserve, taken + count)
        return reserve[taken : taken + count]

    def nothing(self, device: torch.device) -> torch.Tensor:
        """A few bytes for a pointer argument that is never used, or an id nobody reads."""
        key = str(device)
        held = self._nothing.get(key)
        if held is None:
            held = self._nothing[key] = torch.zeros(16, dtype=torch.int32, device=device)
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

    def floats(self, count: int) -> torch.Tensor:
        """fp32[count], undefined, alive until the work enqueued here has used it."""
        return torch.empty(count, dtype=torch.float32, device=self.device)

    def counters(self, count: int) -> torch.Tensor:
        """i32[count], zero; the kernel must leave it zero."""
        return self.scratch.counters(count, self.device)

    def nothing(self) -> torch.Tensor:
        """A pointer argument that is never used."""
        return self.scratch.nothing(self.device)
