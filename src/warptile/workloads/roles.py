"""What a tensor is to the matmuls of a model, told from its name and shape.

Names are those of the GGUF specification's standardized tensor names and of llama.cpp's converters.
"""

from __future__ import annotations

import re
from enum import Enum

from warptile.gguf import TensorInfo

TOKEN_EMBEDDING = "token_embd.weight"
OUTPUT = "output.weight"

_LOOKED_UP = re.compile(r"(^|\.)(token_embd|token_types|position_embd|per_layer_token_embd|embed_tokens)\.weight$")
_NORM = re.compile(r"norm[^.]*\.weight$")
_ROTARY = re.compile(r"(^|\.)rope_[^.]*\.weight$")
_CONVOLUTION = re.compile(r"conv[^.]*\.weight$|(^|\.)patch_embd[^.]*\.weight$")
_EXPERTS = re.compile(r"_exps\.weight$")
_DOWN = re.compile(r"(^|\.)ffn_down_exps\.weight$")
_ONE_EXPERT = re.compile(r"\.ffn_(gate|up|down)\.\d+\.weight$")


class Kind(Enum):
    """A tensor's part in a pass over the model."""

    LINEAR = "linear"
    OUTPUT = "output"
    EXPERTS = "experts"
    EXPERTS_DOWN = "experts_down"
    """Experts whose input is what a token's experts made, and whose outputs are summed."""
    EMBEDDING = "embedding"
    """Rows are looked up by token, nothing is multiplied."""
    OTHER = "other"
    """Norms, biases, rotary tables, convolutions, vectors."""
    UNGROUPED = "ungrouped"
    """A matmul of a form no kernel here computes: batched per head, or one tensor an expert."""


def kind_of(tensor: TensorInfo) -> Kind:
    """The tensor's part: 2-D weights are matmuls unless their name says otherwise; 3-D `_exps` are experts."""
    name, dimensions = tensor.name, len(tensor.shape)
    if not name.endswith(".weight") or dimensions < 2 or any(p.search(name) for p in (_NORM, _ROTARY, _CONVOLUTION)):
        return Kind.OTHER
    if _LOOKED_UP.search(name):
        return Kind.EMBEDDING
    if dimensions == 3 and _EXPERTS.search(name):
        return Kind.EXPERTS_DOWN if _DOWN.search(name) else Kind.EXPERTS
    if dimensions > 2 or _ONE_EXPERT.search(name):
        return Kind.UNGROUPED
    return Kind.OUTPUT if name == OUTPUT else Kind.LINEAR
