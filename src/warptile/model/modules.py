"""What stands in a transformers model where its weights stay packed."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from warptile.model.group import Group


class QuantLinear(nn.Module):
    """y[..., n] = x[..., k] w^T + bias, w packed and computed by the group it belongs to.

    in_features, out_features: k and n. bias: as `nn.Linear`'s, loaded by transformers.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.bias = nn.Parameter(torch.empty(out_features), requires_grad=False) if bias else None
        self.group: Group | None = None
        self.index = 0

    def join(self, group: Group, index: int) -> None:
        """Take the weight that is member `index` of a group."""
        self.group, self.index = group, index

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The product, in x's type."""
        assert self.group is not None, "weights are placed after loading"
        y = self.group.product(self.index, x)
        return y if self.bias is None else y + self.bias

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class QuantEmbedding(nn.Module):
    """Rows of a packed w[n, k] by token, times the scale that the embedding it replaces has.

    dtype: of the result. The rows come from the group's weight, which an output matmul may share.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, scale: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.scale, self.dtype = scale, dtype
        self.group: Group | None = None
        self._rows: Any = None

    def join(self, group: Group, rows: Any) -> None:
        """Take the weight of a group of one; rows: decodes rows of it (`Backend.rows_of`)."""
        self.group, self._rows = group, rows

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """[..., k] for ids i64[...]."""
        rows: torch.Tensor = self._rows(ids, self.dtype)
        return rows if self.scale == 1.0 else rows * self.scale

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


class QuantExperts(nn.Module):
    """y[t] = sum_j p[t, j] down_e(act(gate_e(x[t])) * up_e(x[t])), e = chosen[t, j], weights of experts packed.

    Each expert's gate and up are a group, its down another; an expert computes the tokens that chose it.
    """

    def __init__(self, experts: int, act: nn.Module) -> None:
        super().__init__()
        self.num_experts = experts
        self.act_fn = act
        self.inner = nn.ModuleList()
        self.outer = nn.ModuleList()

    def join(self, inner: list[Group], outer: list[Group]) -> None:
        """Take the groups: for each expert gate and up, and down."""
        self.inner, self.outer = nn.ModuleList(inner), nn.ModuleList(outer)

    def forward(
        self, hidden_states: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor
    ) -> torch.Tensor:
        """[tokens, k] for hidden_states[tokens, k], top_k_index i64[tokens, top_k] and their weights."""
        out = torch.zeros_like(hidden_states)
        for expert in torch.unique(top_k_index).tolist():
            token, place = torch.where(top_k_index == expert)
            x = hidden_states[token]
            inner, outer = self.inner[expert], self.outer[expert]
            assert isinstance(inner, Group)
            assert isinstance(outer, Group)
            gated = self.act_fn(inner.product(0, x)) * inner.product(1, x)
            y = outer.product(0, gated) * top_k_weights[token, place, None]
            out.index_add_(0, token, y.to(out.dtype))
        return out

    def extra_repr(self) -> str:
        return f"experts={self.num_experts}"
