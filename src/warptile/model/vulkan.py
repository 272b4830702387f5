"""Packed weights on a Vulkan device, for a model whose other parts run on the host."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from warptile.contracts import UnusableInput
from warptile.formats import Format
from warptile.model.group import Experts, Group
from warptile.model.timing import Clock
from warptile.serve import Placed, Session
from warptile.together import Timed
from warptile.weights import QuantTensor


class VulkanBackend:
    """A session's device; activations and results are fp32 tensors on the host, one copy each way."""

    def __init__(self, session: Session, batch_invariant: bool = False, clock: Clock | None = None) -> None:
        self.device = torch.device("cpu")
        self.session = session
        self.batch_invariant = batch_invariant
        self.clock = clock or Clock()

    def group(self, weights: Sequence[QuantTensor]) -> Group:
        return VulkanGroup([self.session.place(w) for w in weights], self)

    def experts(self, w: QuantTensor, count: int) -> Experts:
        return VulkanExperts(w, count, self)

    def rows_of(self, group: Group, w: QuantTensor) -> HostRows:
        return HostRows(w.format, w)

    def close(self) -> None:
        """Close the session and its device."""
        self.session.close()


class VulkanGroup(Group):
    """A group computed in one submission; each member keeps its own matmul, as tables know it."""

    def __init__(self, placed: Sequence[Placed], backend: VulkanBackend) -> None:
        super().__init__([p.n for p in placed])
        self._placed = tuple(placed)
        self._backend = backend

    def compute(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        backend = self._backend
        rows = x.detach().to(torch.float32).reshape(-1, x.shape[-1]).contiguous().numpy()
        timings: list[Timed] | None = [] if backend.clock.tracing else None
        start = time.perf_counter()
        ys = backend.session.matmuls(rows, self._placed, backend.batch_invariant, timings)
        backend.clock.add(self.path, time.perf_counter() - start, timings or [])
        return [torch.from_numpy(y).view(*x.shape[:-1], n).to(x.dtype) for y, n in zip(ys, self.sizes, strict=True)]


class VulkanExperts(Experts):
    """Experts packed on the session's device at their first use."""

    def __init__(self, w: QuantTensor, count: int, backend: VulkanBackend) -> None:
        if backend.batch_invariant:
            raise UnusableInput("experts are not served batch-invariantly on Vulkan devices")
        super().__init__(count, w.shape[0] // count, w.shape[1])
        self._w, self._backend = w, backend

    def forward(self, x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor | None = None) -> torch.Tensor:
        """`Session.matmul_id`."""
        rows = x.detach().to(torch.float32).contiguous().numpy()
        shares = None if weights is None else weights.detach().to(torch.float32).contiguous().numpy()
        clock = self._backend.clock
        timings: list[Timed] | None = [] if clock.tracing else None
        start = time.perf_counter()
        y = self._backend.session.matmul_id(rows, self._w, ids.numpy(), shares, experts=self.experts, timings=timings)
        clock.add(self.path, time.perf_counter() - start, timings or [])
        return torch.from_numpy(y).to(x.dtype)


class HostRows:
    """Rows of a weight decoded on the host from its file's blocks, which stay in the page cache."""

    def __init__(self, format: Format, w: QuantTensor) -> None:
        self._format, self._w = format, w

    def __call__(self, ids: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        blocks = self._w.blocks[ids.reshape(-1).numpy()]
        values = self._format.decode(blocks.reshape(-1, self._format.block_bytes))
        return torch.from_numpy(values.reshape(*ids.shape, self._w.shape[1])).to(dtype)
