"""Packed weights on torch tensors: Triton kernels on a card, or in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from warptile import formats
from warptile.contracts import Problem
from warptile.kernels.triton.dequantize.kernel import DequantizeTile
from warptile.layouts.triton import arrangement
from warptile.model.group import Group
from warptile.places import Places
from warptile.runtimes.triton.engine import DTYPES, engine_of
from warptile.torch_ops import TorchWeight, matmul_torch, serve_from_tables
from warptile.weights import QuantTensor


class TorchBackend:
    """Triton kernels on torch tensors of a CUDA or ROCm card, or of Triton's interpreter.

    Members of a group that follow each other in the same format are one matrix there: one launch computes them.
    """

    def __init__(self, device: torch.device, batch_invariant: bool = False, places: Places | None = None) -> None:
        serve_from_tables(device, places)
        self.device = device
        self.batch_invariant = batch_invariant

    def group(self, weights: Sequence[QuantTensor]) -> Group:
        return TorchGroup(weights, self)

    def rows_of(self, group: Group, w: QuantTensor) -> TorchRows:
        assert isinstance(group, TorchGroup)
        return TorchRows(group)

    def close(self) -> None:
        """Torch frees the tensors."""


class TorchGroup(Group):
    """A group whose words are buffers of the module, so that they move with the model."""

    def __init__(self, weights: Sequence[QuantTensor], backend: TorchBackend) -> None:
        super().__init__([w.shape[0] for w in weights])
        self.invariant = backend.batch_invariant
        self.parts: list[tuple[str, str, int, int, list[int]]] = []
        for i, run in enumerate(_runs(weights)):
            joined = run[0] if len(run) == 1 else _joined(run)
            packed = TorchWeight.pack(joined, backend.device)
            name = f"words{i}"
            self.register_buffer(name, packed.words, persistent=False)
            self.parts.append((name, packed.format, packed.n, packed.k, [w.shape[0] for w in run]))

    def weights(self) -> list[TorchWeight]:
        """The packed matrices, in order."""
        return [TorchWeight(getattr(self, name), format, n, k) for name, format, n, k, _ in self.parts]

    def compute(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        found: list[torch.Tensor] = []
        for weight, (*_, sizes) in zip(self.weights(), self.parts, strict=True):
            y = matmul_torch(x, weight, batch_invariant=self.invariant)
            found += [y] if len(sizes) == 1 else y.split(sizes, dim=-1)
        return found


def _runs(weights: Sequence[QuantTensor]) -> list[list[QuantTensor]]:
    runs: list[list[QuantTensor]] = []
    for w in weights:
        if runs and runs[-1][-1].format == w.format:
            runs[-1].append(w)
        else:
            runs.append([w])
    return runs


def _joined(run: Sequence[QuantTensor]) -> QuantTensor:
    n, k = sum(w.shape[0] for w in run), run[0].shape[1]
    return QuantTensor(run[0].format, np.concatenate([w.blocks for w in run]), (n, k))


class TorchRows:
    """Rows of a packed matrix on its device: their words gathered into a matrix of their own, which is decoded."""

    def __init__(self, group: TorchGroup) -> None:
        self._group = group

    def __call__(self, ids: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        (weight,) = self._group.weights()
        few = TorchWeight(gathered(weight, ids.reshape(-1)), weight.format, ids.numel(), weight.k)
        return dequantized(few, dtype).view(*ids.shape, weight.k)


def dequantized(weight: TorchWeight, dtype: torch.dtype) -> torch.Tensor:
    """w[n, k] in `dtype`, by the kernel `triton.dequantize`; its decoder is "plain" for fp32, else "half"."""
    engine = engine_of(weight.words.device)
    x_dtype = DTYPES[dtype]
    problem = Problem(weight.format, weight.n, weight.k, 1, x_dtype, x_dtype)
    tile = DequantizeTile(tile_n=16, decode="plain" if x_dtype == "fp32" else "half", steps=1)
    out = torch.empty((weight.n, weight.k), dtype=dtype, device=weight.words.device)
    engine.decode(engine.prepared(problem, tile.text()), weight.words, out)
    return out


def gathered(weight: TorchWeight, ids: torch.Tensor) -> torch.Tensor:
    """Quad words of the matrix whose row i is row ids[i] of `weight`, to the bit."""
    arranged = arrangement(formats.by_name(weight.format).layout, weight.k)
    starts, _ = arranged.offsets(weight.n)
    targets, total = arranged.offsets(ids.numel())
    words = torch.zeros(total, dtype=torch.int32, device=ids.device)
    for plane, start, target in zip(arranged.planes, starts, targets, strict=True):
        steps, row_bits = weight.k // plane.span, plane.per * plane.bits
        source, out = (
            part.view(torch.uint8)[: steps * _padded(n) * row_bits // 8].view(steps, _padded(n), row_bits // 8)
            for part, n in ((weight.words[start:], weight.n), (words[target:], ids.numel()))
        )
        out[:, : ids.numel()] = source[:, ids]
    return words


def _padded(rows: int) -> int:
    return -(-rows // 16) * 16
