"""What stands in a transformers model where its weights stay packed."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from warptile.model.group import Experts, Group


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
    """y[t] = sum_j p[t, j] down_e(act(gate_e(x[t])) * up_e(x[t])), e = chosen[t, j], weights of all experts packed."""

    def __init__(self, experts: int, act: nn.Module) -> None:
        super().__init__()
        self.num_experts = experts
        self.act_fn = act
        self.gate: Experts | None = None
        self.up: Experts | None = None
        self.down: Experts | None = None

    def join(self, gate: Experts, up: Experts, down: Experts) -> None:
        """Take the three weights."""
        self.gate, self.up, self.down = gate, up, down

    def forward(
        self, hidden_states: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor
    ) -> torch.Tensor:
        """[tokens, k] for hidden_states[tokens, k], top_k_index i64[tokens, top_k] and their weights."""
        assert self.gate is not None
        assert self.up is not None
        assert self.down is not None
        inner = self.act_fn(self.gate(hidden_states, top_k_index)) * self.up(hidden_states, top_k_index)
        y: torch.Tensor = self.down(inner, top_k_index, top_k_weights)
        return y.to(hidden_states.dtype)

    def extra_repr(self) -> str:
        return f"experts={self.num_experts}"
