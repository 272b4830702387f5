"""GGUF architectures as transformers' ones: configuration, names of tensors, and what converters changed.

Metadata keys and tensor names are those of the GGUF specification; what a converter changes (rows of q and k permuted,
1 added to norms) is what llama.cpp's converters do, undone here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from warptile.contracts import UnusableInput
from warptile.gguf.escape import escaped
from warptile.model.metadata import Keys

_GEMMA3_27B_LAYERS = 62

_ATTENTION = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
}
_MLP = {"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
_NORMS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
_HEAD_NORMS = {"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"}
_GEMMA_NORMS = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


@dataclass(frozen=True)
class Architecture:
    """What transformers calls a GGUF architecture, and how the two name its parts.

    layer: a module's path within a decoder layer -> the tensor's stem within `blk.N`. permuted: stems whose rows the
    converter reordered for rotary pairs that lie side by side. norm_offset: what the converter added to norms.
    half: "fp16", or "bf16" where activations exceed fp16's range. experts: path of the experts' module, "" without.
    """

    model_type: str
    layer: Mapping[str, str]
    config: Callable[[Keys], dict[str, Any]]
    permuted: frozenset[str] = frozenset()
    norm_offset: float = 0.0
    half: str = "fp16"
    experts: str = ""
    outer: Mapping[str, str] = field(
        default_factory=lambda: {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    )


def _common(keys: Keys) -> dict[str, Any]:
    heads, hidden = keys.whole("attention.head_count"), keys.whole("embedding_length")
    head = keys.whole("attention.key_length", hidden // max(1, heads))
    for name in ("attention.value_length", "rope.dimension_count"):
        if (other := keys.whole(name, head)) != head:
            raise UnusableInput(f"{keys.where}: {name} is {other} where a head has {head}: not supported")
    eos = [t for name in ("eos", "eot") if (t := keys.token(name)) is not None]
    return {
        "vocab_size": keys.file.tensor("token_embd.weight").shape[-1],
        "hidden_size": hidden,
        "intermediate_size": keys.whole("feed_forward_length", 0),
        "num_hidden_layers": keys.whole("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": keys.whole("attention.head_count_kv", heads),
        "head_dim": head,
        "max_position_embeddings": keys.whole("context_length"),
        "rms_norm_eps": keys.real("attention.layer_norm_rms_epsilon"),
        "rope_parameters": _rope(keys),
        "bos_token_id": keys.token("bos"),
        "eos_token_id": list(dict.fromkeys(eos)) if len(set(eos)) > 1 else next(iter(eos), None),
        "pad_token_id": keys.token("padding"),
    }


def _rope(keys: Keys) -> dict[str, Any]:
    base = keys.real("rope.freq_base", 10000.0)
    kind = keys.text("rope.scaling.type", "linear" if keys.has("rope.scale_linear") else "none")
    factor = keys.real("rope.scaling.factor", keys.real("rope.scale_linear", 1.0))
    if kind == "none" or (kind == "linear" and factor == 1.0):
        return {"rope_type": "default", "rope_theta": base}
    if kind == "linear":
        return {"rope_type": "linear", "rope_theta": base, "factor": factor}
    if kind == "yarn":
        original = keys.whole("rope.scaling.original_context_length")
        return {
            "rope_type": "yarn",
            "rope_theta": base,
            "factor": factor,
            "original_max_position_embeddings": original,
        }
    raise UnusableInput(f"{keys.where}: rope.scaling.type {escaped(kind)} is not supported; none, linear and yarn are")


def _llama(keys: Keys) -> dict[str, Any]:
    if keys.has("expert_count") and keys.whole("expert_count") > 0:
        raise UnusableInput(f"{keys.where}: a mixture of experts of architecture llama is not supported; qwen3moe is")
    return _common(keys) | {"attention_bias": "blk.0.attn_q.bias" in keys.file.tensors}


def _qwen3(keys: Keys) -> dict[str, Any]:
    return _common(keys) | {"attention_bias": "blk.0.attn_q.bias" in keys.file.tensors}


def _qwen3moe(keys: Keys) -> dict[str, Any]:
    return _qwen3(keys) | {
        "num_experts": keys.whole("expert_count"),
        "num_experts_per_tok": keys.whole("expert_used_count"),
        "moe_intermediate_size": keys.whole("expert_feed_forward_length"),
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }


def _gemma3(keys: Keys) -> dict[str, Any]:
    found = _common(keys)
    pattern = keys.whole("attention.sliding_window_pattern", 6)
    layers = found["num_hidden_layers"]
    scalar = found["hidden_size"] // found["num_attention_heads"] if layers == _GEMMA3_27B_LAYERS else found["head_dim"]
    return found | {
        "rope_parameters": {
            "full_attention": found["rope_parameters"] | {"rope_theta": keys.real("rope.freq_base", 1e6)},
            "sliding_attention": {"rope_type": "default", "rope_theta": keys.real("rope.freq_base_swa", 1e4)},
        },
        "sliding_window": keys.whole("attention.sliding_window"),
        "layer_types": ["full_attention" if (i + 1) % pattern == 0 else "sliding_attention" for i in range(layers)],
        "query_pre_attn_scalar": scalar,
        "hidden_activation": "gelu_pytorch_tanh",
    }


ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": Architecture("llama", {**_ATTENTION, **_MLP, **_NORMS}, _llama, permuted=frozenset({"attn_q", "attn_k"})),
    "qwen2": Architecture("qwen2", {**_ATTENTION, **_MLP, **_NORMS}, _common),
    "qwen3": Architecture("qwen3", {**_ATTENTION, **_HEAD_NORMS, **_MLP, **_NORMS}, _qwen3),
    "qwen3moe": Architecture(
        "qwen3_moe",
        {**_ATTENTION, **_HEAD_NORMS, **_NORMS, "mlp.gate": "ffn_gate_inp"},
        _qwen3moe,
        experts="mlp.experts",
    ),
    "gemma3": Architecture(
        "gemma3_text",
        {**_ATTENTION, **_HEAD_NORMS, **_MLP, **_GEMMA_NORMS},
        _gemma3,
        norm_offset=1.0,
        half="bf16",
    ),
}


def architecture_of(keys: Keys) -> Architecture:
    """The file's architecture. Raises UnusableInput, naming it and what there is, where it is not supported.

    A file whose weights are folded with a Hadamard transform is refused by name: without the same transform of the
    activations every matmul is right and the text nonsense.
    """
    folded = sorted(key for key in keys.file.metadata if "hadamard" in key.lower())
    if folded:
        raise UnusableInput(
            f"{keys.where}: its weights are folded with a Hadamard transform ({escaped(folded[0])}), as Bonsai's are; "
            "activations would need the same transform, which is not supported"
        )
    found = ARCHITECTURES.get(keys.architecture)
    if found is None:
        raise UnusableInput(
            f"{keys.where}: architecture {escaped(keys.architecture)} is not supported; needed are its configuration "
            f"and tensor names; there are {', '.join(sorted(ARCHITECTURES))}"
        )
    return found
