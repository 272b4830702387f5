"""What a card computes in few launches beside the packed matmuls: norms, and attention of one new token."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

ATTENTION = "warptile"


class RMSNorm(nn.Module):
    """y = x / sqrt(mean(x^2) + eps) * weight over the last axis, in fp32, rounded to x's type once."""

    def __init__(self, weight: torch.Tensor, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """y[..., n] for x[..., n]."""
        return nn.functional.rms_norm(x, (self.weight.numel(),), self.weight, self.eps)


def fuse_norms(model: nn.Module, offset: float) -> None:
    """Put `RMSNorm` in place of transformers' own norms; offset: what those add to their weight (Gemma's 1).

    With an offset, norms in less than fp32 stay as they are: the sum would have to be rounded before it is used.
    """
    for path, module in list(model.named_modules()):
        eps = getattr(module, "variance_epsilon", getattr(module, "eps", None))
        weight = getattr(module, "weight", None)
        if not (type(module).__name__.endswith("RMSNorm") and isinstance(eps, float)):
            continue
        if isinstance(weight, torch.Tensor) and (not offset or weight.dtype == torch.float32):
            parent, _, name = path.rpartition(".")
            whole = (weight.float() + offset).to(weight.dtype) if offset else weight.detach()
            setattr(model.get_submodule(parent), name, RMSNorm(whole, eps))


def attend(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """softmax(q k^T scaling, masked) v as [batch, tokens, heads, d], for q[batch, heads, tokens, d] and k, v of fewer
    heads.

    One token's query heads that share a key head are the rows of one product, so that keys and values are read once and
    never repeated; more tokens go to transformers' own attention.
    """
    if query.shape[2] != 1 or kwargs.get("position_bias") is not None:
        found: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
        return found
    batch, heads, _, width = query.shape
    grouped = query.reshape(batch, key.shape[1], heads // key.shape[1], width)
    factor = width**-0.5 if scaling is None else scaling
    scores = torch.matmul(grouped * factor, key.transpose(2, 3))
    if attention_mask is not None:
        seen = attention_mask[..., : key.shape[2]]
        scores = scores.masked_fill(~seen, float("-inf")) if seen.dtype == torch.bool else scores + seen
    out = torch.matmul(scores.softmax(dim=-1), value)
    return out.reshape(batch, 1, heads, width), None


def register_attention() -> str:
    """Let transformers know `attend`; its name there."""
    AttentionInterface.register(ATTENTION, attend)
    AttentionMaskInterface.register(ATTENTION, sdpa_mask)
    return ATTENTION
