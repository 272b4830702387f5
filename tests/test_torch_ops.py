"""`matmul` on torch tensors: what a model's linear layer relies on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warptile import formats
from warptile.contracts import InvalidTile, Problem, Runtime, UnusableInput
from warptile.proof.weights import random_blocks
from warptile.weights import QuantTensor

torch = pytest.importorskip("torch")

N, K = 48, 512
TILE = "triton.gemm:tile_n=16,tile_m=8,tile_k=128,split_k=2,warps=1"


@pytest.fixture(scope="module")
def weight() -> QuantTensor:
    found = formats.by_name("Q4_K")
    blocks = random_blocks(found, N * K // found.block_size, np.random.default_rng(3))
    return QuantTensor.from_blocks(found, blocks, (N, K))


@pytest.fixture
def matmul(interpreter: Runtime, weight: QuantTensor) -> Callable[..., Any]:
    from warptile.torch_ops import TorchWeight, matmul_torch

    packed = TorchWeight.pack(weight, "cpu")
    return lambda x, **options: matmul_torch(x, packed, **({"tile": TILE} | options))


def activations(m: int) -> Any:
    return torch.randn((m, K), generator=torch.Generator().manual_seed(m)).to(torch.float16)


def test_views_of_x_give_what_their_copies_give(matmul: Callable[..., Any]) -> None:
    x = activations(5)
    y = matmul(x)
    wide = torch.full((5, 3 * K), float("nan"), dtype=torch.float16)
    for start in (8, 1):  # rows that begin at a multiple of 16 bytes, and rows that do not
        wide[:, start : start + K] = x
        assert torch.equal(matmul(wide[:, start : start + K]), y)
    assert torch.equal(matmul(x.t().contiguous().t()), y)
    assert torch.equal(matmul(x[:4].reshape(2, 2, K)).reshape(4, N), y[:4])
    assert torch.equal(matmul(x[0]), y[0])


def test_no_rows_give_no_rows(matmul: Callable[..., Any]) -> None:
    assert matmul(activations(0)).shape == (0, N)


def test_compiled_equals_eager(matmul: Callable[..., Any]) -> None:
    """fullgraph: the op is one node with a fake of its own, so nothing breaks the graph and no view goes wrong."""
    x = activations(3)
    compiled = torch.compile(lambda a: matmul(a) * 2, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), matmul(x) * 2)


def test_the_fake_knows_shape_and_type(matmul: Callable[..., Any]) -> None:
    torch.library.opcheck(
        torch.ops.warptile.matmul.default,
        (activations(2), *_operands(matmul), False),
        test_utils=("test_schema", "test_faketensor"),
    )


def _operands(matmul: Callable[..., Any]) -> tuple[Any, ...]:
    packed = matmul.__closure__[1].cell_contents  # type: ignore[attr-defined]
    return packed.words, packed.format, packed.n, packed.k, TILE


def test_batch_invariant_rows_do_not_depend_on_their_company(matmul: Callable[..., Any]) -> None:
    x = activations(9)
    whole = matmul(x, tile=None, batch_invariant=True)
    for m in (1, 4):
        assert torch.equal(matmul(x[:m], tile=None, batch_invariant=True), whole[:m])


def test_a_router_decides(interpreter: Runtime, weight: QuantTensor, monkeypatch: pytest.MonkeyPatch) -> None:
    from warptile.runtimes.triton.engine import engine_of
    from warptile.torch_ops import add_router, matmul_torch

    asked: list[Problem] = []
    engine = engine_of(torch.device("cpu"))
    monkeypatch.setattr(engine, "routers", [])
    monkeypatch.setattr(engine, "_routes", {})
    add_router("cpu", lambda problem: asked.append(problem) or TILE)  # type: ignore[func-returns-value]
    x = activations(2)
    assert torch.equal(matmul_torch(x, weight), matmul_torch(x, weight, tile=TILE))
    assert asked == [Problem("Q4_K", N, K, 2, "fp16", "fp16")]


@pytest.mark.parametrize(
    ("x", "options", "error", "says"),
    [
        (torch.zeros(2, K + 256, dtype=torch.float16), {}, UnusableInput, r"the last axis must be 512"),
        (torch.zeros(2, K, dtype=torch.int8), {}, UnusableInput, "not torch.int8"),
        (torch.zeros(2, K, dtype=torch.float16, device="meta"), {}, UnusableInput, "x is on meta, w on cpu"),
        (activations(2), {"tile": "tile_n=16"}, UnusableInput, "names no kernel"),
        (activations(2), {"tile": "vulkan.mul_mm:x=1"}, UnusableInput, "mul_mm"),
        (activations(2), {"tile": TILE.replace("tile_k=128", "tile_k=64")}, InvalidTile, "64 != 128"),
        (activations(2).to(torch.bfloat16), {}, InvalidTile, "fp16 holds the range of x"),
        (activations(2), {"batch_invariant": True}, UnusableInput, "chooses its own tile"),
    ],
)
def test_bad_input_is_refused_before_the_launch(
    matmul: Callable[..., Any], x: Any, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        matmul(x, **options)


def test_a_host_tensor_without_the_interpreter_is_refused(
    interpreter: Runtime, weight: QuantTensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from warptile.torch_ops import TorchWeight

    monkeypatch.delenv("TRITON_INTERPRET")
    with pytest.raises(UnusableInput, match="CUDA or ROCm tensors; this one is on cpu"):
        TorchWeight.pack(weight, "cpu")
