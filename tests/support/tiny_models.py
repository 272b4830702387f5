"""Tiny models of real architectures, written as GGUF files with random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, HEAD, VOCABULARY, EXPERTS = 64, 96, 2, 4, 2, 16, 320, 4
MOE_INNER = 32


def write_tiny(
    path: Path,
    architecture: str,
    *,
    kind: str = "Q8_0",
    tied: bool = False,
    seed: int = 0,
    layers: int = LAYERS,
    extra: dict[str, Any] | None = None,
    leave_out: tuple[str, ...] = (),
) -> Path:
    """A model whose linears are `kind` ("Q8_0", "Q4_0", "Q4_1", "F16"), norms F32; names with `leave_out` in them are
    not written. extra: string metadata under full keys."""
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(str(path), architecture)
    _metadata(writer, architecture, layers)
    if not any("tokenizer" in word for word in leave_out):
        _tokenizer(writer)
    for key, value in (extra or {}).items():
        writer.add_string(key, value)
    for name, shape in tensors(architecture, tied, layers).items():
        if any(word in name for word in leave_out):
            continue
        if len(shape) == 1:
            values = 1 + 0.2 * rng.standard_normal(shape) if "norm" in name else 0.1 * rng.standard_normal(shape)
            writer.add_tensor(name, values.astype(np.float32))
        else:
            _add(writer, name, (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32), kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tensors(architecture: str, tied: bool, layers: int = LAYERS) -> dict[str, tuple[int, ...]]:
    """Shapes by name, as numpy sees them."""
    found: dict[str, tuple[int, ...]] = {"token_embd.weight": (VOCABULARY, HIDDEN), "output_norm.weight": (HIDDEN,)}
    if not tied:
        found["output.weight"] = (VOCABULARY, HIDDEN)
    for i in range(layers):
        blk = f"blk.{i}"
        found |= {
            f"{blk}.attn_norm.weight": (HIDDEN,),
            f"{blk}.ffn_norm.weight": (HIDDEN,),
            f"{blk}.attn_q.weight": (HEADS * HEAD, HIDDEN),
            f"{blk}.attn_k.weight": (KV_HEADS * HEAD, HIDDEN),
            f"{blk}.attn_v.weight": (KV_HEADS * HEAD, HIDDEN),
            f"{blk}.attn_output.weight": (HIDDEN, HEADS * HEAD),
        }
        if architecture == "qwen2":
            found |= {f"{blk}.attn_{p}.bias": (n * HEAD,) for p, n in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS))}
        if architecture in ("qwen3", "qwen3moe", "gemma3"):
            found |= {f"{blk}.attn_{p}_norm.weight": (HEAD,) for p in ("q", "k")}
        if architecture == "gemma3":
            found |= {f"{blk}.{p}.weight": (HIDDEN,) for p in ("post_attention_norm", "post_ffw_norm")}
        if architecture == "qwen3moe":
            found |= {
                f"{blk}.ffn_gate_inp.weight": (EXPERTS, HIDDEN),
                f"{blk}.ffn_gate_exps.weight": (EXPERTS, MOE_INNER, HIDDEN),
                f"{blk}.ffn_up_exps.weight": (EXPERTS, MOE_INNER, HIDDEN),
                f"{blk}.ffn_down_exps.weight": (EXPERTS, HIDDEN, MOE_INNER),
            }
        else:
            found |= {f"{blk}.ffn_{p}.weight": (INNER, HIDDEN) for p in ("gate", "up")}
            found[f"{blk}.ffn_down.weight"] = (HIDDEN, INNER)
    return found


def _metadata(writer: gguf.GGUFWriter, architecture: str, layers: int) -> None:
    writer.add_context_length(512)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_rope_dimension_count(HEAD)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    if architecture == "gemma3":
        writer.add_sliding_window(16)
    if architecture == "qwen3moe":
        writer.add_expert_count(EXPERTS)
        writer.add_expert_used_count(2)
        writer.add_expert_feed_forward_length(MOE_INNER)


def _tokenizer(writer: gguf.GGUFWriter) -> None:
    """Byte-level BPE: the 256 bytes, one merge, and a few control tokens."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in shown]
    alphabet = [chr(b) for b in shown] + [chr(256 + i) for i in range(len(hidden))]
    tokens = [*alphabet, "th", *(f"<|{i}|>" for i in range(VOCABULARY - 257))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 257 + [3] * (VOCABULARY - 257))
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(257)
    writer.add_eos_token_id(258)


def _add(writer: gguf.GGUFWriter, name: str, values: npt.NDArray[np.float32], kind: str) -> None:
    if kind == "F16":
        writer.add_tensor(name, values.astype(np.float16))
        return
    type_id = gguf.GGMLQuantizationType[kind]
    writer.add_tensor(name, gguf.quants.quantize(values, type_id), raw_dtype=type_id)
