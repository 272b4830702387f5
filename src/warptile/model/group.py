"""Packed weights that take the same input, and where they are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn

from warptile.weights import QuantTensor


@dataclass
class _Held:
    """What a group computed for x that its members have not asked for yet."""

    x: torch.Tensor
    version: int
    rest: dict[int, torch.Tensor]


class Group(nn.Module):
    """Weights w_i[n_i, k] of linears with the same input: the first to be called computes all of them.

    The others take their result if they are called once each with that very tensor, unchanged since; a member called
    otherwise computes again. path: of the first member's module in the model.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        self.path = ""
        self._held: _Held | None = None

    def product(self, index: int, x: torch.Tensor) -> torch.Tensor:
        """y[..., n] = x[..., k] w^T of member `index`."""
        # A traced graph has no versions; its tensors are not changed in place between siblings.
        traced = torch.compiler.is_compiling() or x.is_inference()
        held, version = self._held, 0 if traced else x._version
        if held is not None and held.x is x and held.version == version and index in held.rest:
            y = held.rest.pop(index)
            if not held.rest:
                self._held = None
            return y
        self._held = None
        rest = dict(enumerate(self.compute(x)))
        y = rest.pop(index)
        if rest:
            self._held = _Held(x, version, rest)
        return y

    def forward(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        """`compute`, as a module's call: hooks see it."""
        return self.compute(x)

    def compute(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        """The results of all members, in order."""
        raise NotImplementedError


class Experts(nn.Module):
    """Weights w[experts, n, k], packed. path: of the module in the model that they belong to."""

    def __init__(self, experts: int, n: int, k: int) -> None:
        super().__init__()
        self.experts, self.n, self.k = experts, n, k
        self.path = ""

    def forward(self, x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor | None = None) -> torch.Tensor:
        """y[t, j, n] = w[ids[t, j]] x[t] for x[t, k], or x[t, j, k] with a row for each; with weights[t, j] their sum
        over j, y[t, n]."""
        raise NotImplementedError


class Backend(Protocol):
    """Where packed weights live and are multiplied. device: of the tensors that go in and come out."""

    device: torch.device

    def group(self, weights: Sequence[QuantTensor]) -> Group: ...

    def experts(self, w: QuantTensor, count: int) -> Experts:
        """A 3-D weight whose rows are those of `count` experts one after another."""
        ...

    def rows_of(self, group: Group, w: QuantTensor) -> Any:
        """Decodes rows of the group's only weight: (ids i64[...], dtype) -> [..., k]; `w` is the same weight."""
        ...

    def close(self) -> None:
        """Give the device back, where it is the model's own."""
        ...
