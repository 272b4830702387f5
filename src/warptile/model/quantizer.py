"""transformers' quantizer interface: linears, embeddings and experts of a GGUF stay packed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from warptile.model.fused import fuse_norms, register_attention
from warptile.model.group import Backend, Group
from warptile.model.modules import QuantEmbedding, QuantExperts, QuantLinear
from warptile.model.tensors import ModelTensors

METHOD = "warptile"
SAME_INPUT = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))
"""Siblings that every supported architecture calls once each with the same tensor; `workloads.joined` has them by the
names of their tensors."""


@dataclass(frozen=True)
class Plan:
    """What is loaded and where it lives; one object, however often transformers copies the configuration."""

    tensors: ModelTensors
    backend: Backend
    dtype: torch.dtype

    def __deepcopy__(self, memo: dict[int, Any]) -> Plan:
        return self


@register_quantization_config(METHOD)
class WarptileConfig(QuantizationConfigMixin):
    """Names the method in a model's configuration; the plan stays out of what is written to files."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.quant_method = METHOD
        self.plan = plan

    def to_dict(self) -> dict[str, Any]:
        """The method's name."""
        return {"quant_method": METHOD}


@dataclass(frozen=True)
class _Packed:
    """A module that stays packed, by the path it has in the model."""

    path: str
    module: nn.Module


@register_quantizer(METHOD)
class WarptileQuantizer(HfQuantizer):
    """Replaces modules whose tensors are quantized before transformers loads the rest, and fills them afterwards."""

    requires_calibration = False

    def __init__(self, quantization_config: WarptileConfig, **kwargs: Any) -> None:
        super().__init__(quantization_config, **kwargs)
        self.pre_quantized = True
        assert quantization_config.plan is not None
        self.plan = quantization_config.plan
        self._packed: list[_Packed] = []

    def is_serializable(self, safe_serialization: bool | None = None) -> bool:
        """The GGUF is the file; nothing is written."""
        return False

    @property
    def is_trainable(self) -> bool:
        """Packed weights have no gradient."""
        return False

    def _process_model_before_weight_loading(self, model: nn.Module, **kwargs: Any) -> None:
        for path, module in list(model.named_modules()):
            if self._stays_packed(path, module):
                stand_in = self._stand_in(module)
                parent, _, name = path.rpartition(".")
                setattr(model.get_submodule(parent), name, stand_in)
                self._packed.append(_Packed(path, stand_in))

    def _stays_packed(self, path: str, module: nn.Module) -> bool:
        tensors = self.plan.tensors
        if isinstance(module, nn.Linear | nn.Embedding):
            return tensors.is_packed(path)
        return bool(tensors.architecture.experts) and path.endswith("." + tensors.architecture.experts)

    def _stand_in(self, module: nn.Module) -> nn.Module:
        if isinstance(module, nn.Linear):
            return QuantLinear(module.in_features, module.out_features, module.bias is not None)
        if isinstance(module, nn.Embedding):
            # The buffer is on the meta device here; the module keeps the number it was made from.
            scale = float(getattr(module, "scalar_embed_scale", 1.0))
            return QuantEmbedding(module.num_embeddings, module.embedding_dim, scale, self.plan.dtype)
        return QuantExperts(int(module.num_experts), module.act_fn)

    def _process_model_after_weight_loading(self, model: Any, **kwargs: Any) -> Any:
        tensors, backend = self.plan.tensors, self.plan.backend
        shared: dict[str | None, Group] = {}
        for together in _groups(self._packed):
            first = together[0]
            if isinstance(first.module, QuantExperts):
                packed = [backend.experts(w, first.module.num_experts) for w in tensors.experts(first.path)]
                for part, own in zip(("gate", "up", "down"), packed, strict=True):
                    own.path = f"{first.path}.{part}_proj"
                first.module.join(*packed)
                continue
            name = tensors.name(first.path)
            group = shared.get(name)
            if group is None:
                group = shared[name] = backend.group([tensors.packed(each.path) for each in together])
                group.path = first.path
            for index, each in enumerate(together):
                if isinstance(each.module, QuantEmbedding):
                    each.module.join(group, backend.rows_of(group, tensors.packed(each.path)))
                else:
                    assert isinstance(each.module, QuantLinear)
                    each.module.join(group, index)
                    group.path = together[0].path
        self._packed.clear()
        fuse_norms(model, tensors.architecture.norm_offset)
        if backend.device.type == "cuda":
            model.set_attn_implementation(register_attention())
        return model


def _groups(packed: list[_Packed]) -> list[list[_Packed]]:
    """Modules that take the same input together, in the model's order; the others alone."""
    found: dict[str, list[_Packed]] = {}
    for each in packed:
        parent, _, name = each.path.rpartition(".")
        siblings = next((names for names in SAME_INPUT if name in names), None)
        found.setdefault(each.path if siblings is None else f"{parent}.{siblings[0]}", []).append(each)
    return list(found.values())


__all__ = ["METHOD", "Plan", "WarptileConfig", "WarptileQuantizer"]
