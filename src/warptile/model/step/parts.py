"""What a step needs of a transformers model: its layers' weights and numbers, where the architecture is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from warptile.model.fused import RMSNorm
from warptile.model.modules import QuantLinear

KNOWN = frozenset({"llama", "qwen2", "qwen3", "qwen3_moe", "gemma3_text"})
"""Model types whose decoder layer is norm, attention, sum, norm, gated product, sum, with or without norms of heads and
of what is added."""

_GELU = frozenset({"gelu_pytorch_tanh"})
_SILU = frozenset({"silu", "swish"})


@dataclass(frozen=True)
class Norm:
    """out = x / sqrt(mean(x^2) + eps) * (weight + offset)."""

    weight: torch.Tensor
    eps: float
    offset: float

    @classmethod
    def of(cls, module: Any) -> Norm:
        """Of transformers' RMSNorm modules, and of the one that takes their place here."""
        eps = float(getattr(module, "variance_epsilon", getattr(module, "eps", 0.0)))
        own = isinstance(module, RMSNorm)
        return cls(module.weight, eps, 1.0 if not own and type(module).__name__.startswith("Gemma") else 0.0)


@dataclass(frozen=True)
class Linears:
    """Linears that take the same input, in order."""

    modules: tuple[nn.Module, ...]

    def products(self, x: torch.Tensor) -> list[torch.Tensor]:
        """y_i[tokens, n_i], biases left out; rows may lie apart, elements of a row are neighbours."""
        first = self.modules[0]
        if isinstance(first, QuantLinear) and all(
            isinstance(m, QuantLinear) and m.group is first.group for m in self.modules
        ):
            assert first.group is not None
            found = first.group(x)
            return [found[m.index] for m in self.modules if isinstance(m, QuantLinear)]
        return [one(module, x) for module in self.modules]

    def biases(self) -> list[torch.Tensor] | None:
        """One a linear, None where they have none."""
        found = [bias for m in self.modules if (bias := getattr(m, "bias", None)) is not None]
        return found if len(found) == len(self.modules) else None

    def outputs(self) -> list[int]:
        """n_i."""
        return [int(m.out_features) for m in self.modules]


def one(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """x w^T without the bias, which only linears that are not packed may have."""
    if isinstance(module, nn.Linear):
        return nn.functional.linear(x, module.weight)
    assert isinstance(module, QuantLinear)
    assert module.bias is None
    y: torch.Tensor = module(x)
    return y


@dataclass(frozen=True)
class Layer:
    """A decoder layer. head_norms: of queries and keys; after: of what attention and the inner layer add (Gemma).

    window: tokens that a token sees, itself included, 0 for all. kind: its rotary table. inner: (gate and up, down), or
    the module of a mixture of experts. gelu: whether the gate's function is gelu's tanh form, else it is silu.
    """

    norms: tuple[Norm, Norm]
    after: tuple[Norm, Norm] | None
    head_norms: tuple[Norm, Norm] | None
    inputs: Linears
    output: nn.Module
    scale: float
    window: int
    kind: str
    inner: tuple[Linears, nn.Module] | nn.Module
    gelu: bool


def layers_of(model: Any) -> list[Layer] | None:
    """The layers of a model whose architecture is known, else None: nothing that is not understood is replaced."""
    config = model.config
    if config.model_type not in KNOWN or getattr(config, "final_logit_softcapping", None) is not None:
        return None
    if getattr(config, "use_bidirectional_attention", False) or getattr(model.lm_head, "bias", None) is not None:
        return None
    found = [_layer(layer, config, i) for i, layer in enumerate(model.model.layers)]
    return None if any(layer is None for layer in found) else [layer for layer in found if layer is not None]


def _layer(layer: Any, config: Any, index: int) -> Layer | None:
    attention, mlp = layer.self_attn, layer.mlp
    act = getattr(config, "hidden_activation", None) or getattr(config, "hidden_act", "")
    inputs = Linears((attention.q_proj, attention.k_proj, attention.v_proj))
    some = sum(getattr(m, "bias", None) is not None for m in inputs.modules)
    inner: tuple[Linears, nn.Module] | nn.Module = mlp
    if hasattr(mlp, "gate_proj"):
        inner = (Linears((mlp.gate_proj, mlp.up_proj)), mlp.down_proj)
    plain = [attention.o_proj, *((mlp.gate_proj, mlp.up_proj, mlp.down_proj) if isinstance(inner, tuple) else ())]
    if (
        act not in _GELU | _SILU
        or some not in (0, len(inputs.modules))
        or any(getattr(m, "bias", None) is not None for m in plain)
        or getattr(attention, "attn_logit_softcapping", None) is not None
    ):
        return None
    gemma = config.model_type.startswith("gemma")
    kinds: Sequence[str] = getattr(config, "layer_types", None) or ()
    kind = kinds[index] if index < len(kinds) else "full_attention"
    second = layer.pre_feedforward_layernorm if gemma else layer.post_attention_layernorm
    after = None
    if gemma:
        after = Norm.of(layer.post_attention_layernorm), Norm.of(layer.post_feedforward_layernorm)
    heads = None
    if hasattr(attention, "q_norm"):
        heads = Norm.of(attention.q_norm), Norm.of(attention.k_norm)
    return Layer(
        norms=(Norm.of(layer.input_layernorm), Norm.of(second)),
        after=after,
        head_norms=heads,
        inputs=inputs,
        output=attention.o_proj,
        scale=float(attention.scaling),
        window=int(config.sliding_window) if kind == "sliding_attention" else 0,
        kind=kind,
        inner=inner,
        gelu=act in _GELU,
    )
