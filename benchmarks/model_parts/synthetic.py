"""Models of real shapes with random weights, as real GGUF files."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

from warptile import formats

POOL_BYTES = 64 << 20
WRITERS = 6
ALIGNMENT = 32


@dataclass(frozen=True)
class Shape:
    """A Llama's dimensions and the formats of its weights."""

    name: str
    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    vocabulary: int
    common: str
    better: str
    embedding: str
    tied: bool
    base: float

    def kind(self, stem: str, layer: int) -> str:
        """llama.cpp's mixture: v and down of an eighth of the layers at both ends, and every third between, better."""
        eighth = self.layers // 8
        more = layer < eighth or layer >= self.layers - eighth or (layer - eighth) % 3 == 2
        return self.better if stem in ("attn_v", "ffn_down") and more else self.common


LLAMA_8B = Shape(
    "llama-8b-q4_k_m", 4096, 14336, 32, 32, 8, 128, 128256, "Q4_K", "Q6_K", "Q4_K", tied=False, base=500000.0
)
SMOLLM2 = Shape("smollm2-135m-q4_1", 576, 1536, 30, 9, 3, 64, 49152, "Q4_1", "Q4_1", "Q8_0", tied=True, base=100000.0)


def write_model(folder: Path, shape: Shape, seed: int = 0) -> Path:
    """Write the model; blocks are random bytes with scales that keep activations near one. Returns its path."""
    path = folder / f"{shape.name}.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(8192)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_rope_dimension_count(shape.head)
    writer.add_rope_freq_base(shape.base)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    alphabet = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = [chr(b) for b in alphabet] + [chr(256 + i) for i in range(256 - len(alphabet))]
    writer.add_token_list([*letters, "th", *(f"{letters[i % 200]}{i}" for i in range(257, shape.vocabulary))])
    writer.add_token_types([1] * shape.vocabulary)
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    pools: dict[str, npt.NDArray[np.uint8]] = {}
    rng = np.random.default_rng(seed)
    plan: list[tuple[str, int]] = []
    for name, kind, n, k in _weights(shape):
        if kind == "F32":
            writer.add_tensor_info(name, (n,), np.dtype(np.float32), 4 * n)
            plan.append((kind, 4 * n))
            continue
        if kind not in pools:
            pools[kind] = _pool(kind, rng)
        row = formats.by_name(kind).row_bytes(k)
        writer.add_tensor_info(name, (n, row), np.dtype(np.uint8), n * row, gguf.GGMLQuantizationType[kind])
        plan.append((kind, n * row))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    _fill(path, plan, pools)
    return path


def _fill(path: Path, plan: list[tuple[str, int]], pools: dict[str, npt.NDArray[np.uint8]]) -> None:
    """Write tensors' bytes behind the header, a few at a time: copies into a file in memory take a processor each."""
    at = _aligned(path.stat().st_size)
    jobs = []
    for kind, size in plan:
        data = np.ones(size // 4, np.float32).view(np.uint8) if kind == "F32" else pools[kind]
        for start in range(0, size, data.size):
            jobs.append((at + start, data[: min(data.size, size - start)]))
        at += _aligned(size)
    file = os.open(path, os.O_RDWR)
    os.ftruncate(file, at)
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda job: os.pwrite(file, job[1], job[0]), jobs))
    os.close(file)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _weights(shape: Shape) -> list[tuple[str, str, int, int]]:
    found = [("token_embd.weight", shape.embedding, shape.vocabulary, shape.hidden)]
    found.append(("output_norm.weight", "F32", shape.hidden, 0))
    if not shape.tied:
        found.append(("output.weight", shape.better, shape.vocabulary, shape.hidden))
    query, key = shape.heads * shape.head, shape.kv_heads * shape.head
    for i in range(shape.layers):
        for stem, n, k in (
            ("attn_q", query, shape.hidden),
            ("attn_k", key, shape.hidden),
            ("attn_v", key, shape.hidden),
            ("attn_output", shape.hidden, query),
            ("ffn_gate", shape.inner, shape.hidden),
            ("ffn_up", shape.inner, shape.hidden),
            ("ffn_down", shape.hidden, shape.inner),
        ):
            found.append((f"blk.{i}.{stem}.weight", shape.kind(stem, i), n, k))
        found += [(f"blk.{i}.{stem}.weight", "F32", shape.hidden, 0) for stem in ("attn_norm", "ffn_norm")]
    return found


def _pool(kind: str, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Random blocks, `POOL_BYTES` and a few more so that no two tensors repeat in step; standard deviation of a weight
    near 0.02, mean near 0."""
    format = formats.by_name(kind)
    count = POOL_BYTES // format.block_bytes + 17
    blocks = rng.integers(0, 256, (count, format.block_bytes), np.uint8)

    def put(at: int, values: npt.NDArray[np.float64]) -> None:
        blocks[:, at : at + 2] = values.astype(np.float16).view(np.uint8).reshape(count, 2)

    spread = rng.uniform(0.8, 1.2, count)
    if kind == "Q4_K":
        put(0, 1.1e-4 * spread)
        put(2, 8.2e-4 * spread)
    elif kind == "Q6_K":
        put(208, 1.5e-5 * spread)
    elif kind == "Q4_1":
        put(0, 4e-3 * spread)
        put(2, -3e-2 * spread)
    elif kind == "Q8_0":
        put(0, 2.7e-4 * spread)
    else:
        raise ValueError(kind)
    return blocks.reshape(-1)
