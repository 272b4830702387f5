"""A whole layer of a mixture of experts, Qwen3-MoE's shrunk, from a GGUF file: router, experts, weighted sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFWriter
from numpy.typing import NDArray

from warptile import formats
from warptile.contracts import Problem, Runtime, UnusableInput
from warptile.places import Places
from warptile.proof.weights import random_blocks
from warptile.serve import Session
from warptile.weights import QuantTensor
from warptile.workloads import from_gguf

EXPERTS, TOP_K, WIDTH, INNER, TOKENS = 8, 2, 256, 256, 12
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Experts = Callable[[Any, QuantTensor, Any, Any], Any]


@dataclass(frozen=True)
class Layer:
    """The tensors of one layer's experts, as the file holds them, and the router's dense matrix."""

    gate: QuantTensor
    up: QuantTensor
    down: QuantTensor
    router: F32

    def chosen(self, x: F32) -> tuple[NDArray[np.int32], F32]:
        """Ids of the experts with the largest router probabilities, and these, normalized to sum 1."""
        logits = x @ self.router.T
        ids = np.argsort(-logits, axis=1, kind="stable")[:, :TOP_K].astype(np.int32)
        of = np.exp(np.take_along_axis(logits, ids, axis=1) - logits.max(axis=1, keepdims=True))
        return ids, (of / of.sum(axis=1, keepdims=True)).astype(np.float32)

    def reference(self, x: F32) -> F64:
        """In double, token by token, with weights decoded by the reference."""
        dense = [w.dequantize().astype(np.float64).reshape(EXPERTS, -1, WIDTH) for w in (self.gate, self.up)]
        back = self.down.dequantize().astype(np.float64).reshape(EXPERTS, WIDTH, INNER)
        ids, weights = self.chosen(x)
        y = np.zeros((len(x), WIDTH))
        for t, row in enumerate(x.astype(np.float64)):
            for e, weight in zip(ids[t], weights[t], strict=True):
                gate, up = dense[0][e] @ row, dense[1][e] @ row
                y[t] += float(weight) * (back[e] @ (gate / (1 + np.exp(-gate)) * up))
        return y


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of one layer, written by the gguf package: Q4_K gates and ups, Q6_K downs."""
    path = tmp_path_factory.mktemp("moe") / "layer.gguf"
    rng = np.random.default_rng(0)
    writer = GGUFWriter(path, "qwen3moe")
    writer.add_expert_count(EXPERTS)
    writer.add_expert_used_count(TOP_K)
    writer.add_tensor("blk.0.ffn_gate_inp.weight", rng.standard_normal((EXPERTS, WIDTH), np.float32) / 16)
    for name, kind, n, k in (
        ("gate", "Q4_K", INNER, WIDTH),
        ("up", "Q4_K", INNER, WIDTH),
        ("down", "Q6_K", WIDTH, INNER),
    ):
        found = formats.by_name(kind)
        blocks = random_blocks(found, EXPERTS * n * k // found.block_size, rng)
        packed = blocks.reshape(EXPERTS, n, found.row_bytes(k))
        writer.add_tensor(f"blk.0.ffn_{name}_exps.weight", packed, raw_dtype=GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def layer(model: Path) -> Layer:
    parts = [QuantTensor.from_gguf(model, f"blk.0.ffn_{name}_exps.weight") for name in ("gate", "up", "down")]
    router = np.random.default_rng(0).standard_normal((EXPERTS, WIDTH), np.float32) / 16
    return Layer(*parts, router)


@pytest.fixture(scope="module")
def x() -> F32:
    drawn: F32 = np.random.default_rng(7).standard_normal((TOKENS, WIDTH), np.float32)
    return drawn


def nmse(y: NDArray[Any], want: F64) -> float:
    return float(np.square(y.astype(np.float64) - want).sum() / np.square(want).sum())


def test_the_file_asks_for_grouped_matmuls(model: Path) -> None:
    found = from_gguf(model).problems(TOKENS)
    assert found == (
        Problem("Q4_K", INNER, WIDTH, TOKENS, experts=EXPERTS, top_k=TOP_K, count=2),
        Problem("Q6_K", WIDTH, INNER, TOKENS, experts=EXPERTS, top_k=TOP_K, x_slots=True, summed=True),
    )


@pytest.mark.filterwarnings("ignore::warptile.routing.UntunedWarning")
def test_layer_on_a_vulkan_device(software_device: str, places: Places, layer: Layer, x: F32) -> None:
    """fp32 throughout: three sums of 256 terms, each off by 256 * 2^-24 of its magnitudes at most, so far below 1e-9.

    One token alone gives what it gives among others, by whichever kernel each is served.
    """
    ids, weights = layer.chosen(x)
    with Session(software_device, places) as session:

        def experts(rows: F32, w: QuantTensor, at: NDArray[np.int32], by: F32 | None = None) -> F32:
            return session.matmul_id(rows, w, at, by, experts=EXPERTS)

        def forward(part: slice) -> F32:
            gate, up = (experts(x[part], w, ids[part]) for w in (layer.gate, layer.up))
            return experts(gate / (1 + np.exp(-gate)) * up, layer.down, ids[part], weights[part])

        y = forward(slice(None))
        assert nmse(y, layer.reference(x)) < 1e-9
        assert nmse(forward(slice(3, 4)), layer.reference(x)[3:4]) < 1e-9
        assert experts(x[:0], layer.gate, ids[:0]).shape == (0, TOP_K, INNER)
        with pytest.raises(UnusableInput, match="there are experts 0 to 7"):
            experts(x, layer.gate, ids + 1)


def test_layer_on_torch_tensors(interpreter: Runtime, layer: Layer, x: F32) -> None:
    """fp16 activations and weights, fp32 sums: each of two matmuls rounds its operands by 2^-11, so NMSE is about
    4 * 2^-22 / 3 a matmul, a few 1e-6 for the layer, whose activation stretches errors."""
    torch = pytest.importorskip("torch")
    from warptile.torch_experts import TorchExperts, matmul_id

    few = x[:4]
    ids, weights = (torch.from_numpy(a) for a in layer.chosen(few))
    rows = torch.from_numpy(few).half()
    gate, up, down = (TorchExperts.pack(w, EXPERTS, "cpu") for w in (layer.gate, layer.up, layer.down))
    tile = "triton.gemm_id:tile_n=256,tile_m=8,tile_k=128,warps=8"
    g, u = (matmul_id(rows, w, ids, tile=tile).float() for w in (gate, up))
    h = torch.nn.functional.silu(g) * u
    scale = float(h.abs().max()) / 1024
    y = matmul_id((h / scale).half(), down, ids, weights, tile=tile).float() * scale
    assert nmse(y.numpy(), layer.reference(few)) < 1e-5
