"""`matmul` on torch tensors: what a model's linear layer relies on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.models import smollm2
from warptile import formats
from warptile.contracts import InvalidTile, Problem, Runtime, UnusableInput
from warptile.places import Places
from warptile.proof.version import PROOF_VERSION
from warptile.proof.weights import random_blocks
from warptile.serve import Session, UntunedWarning
from warptile.tables import Point, Table, Validity
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


def test_who_watches_operators_sees_the_product(matmul: Callable[..., Any]) -> None:
    """A call that nobody watches goes past torch's dispatcher; a profiler, a mode and a tracer must find the operator."""
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: list[str] = []

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = activations(2)
    plain = matmul(x)
    with Watching():
        assert torch.equal(matmul(x), plain)
    assert any(name.startswith("warptile.matmul") for name in seen)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        matmul(x)
    assert any(event.name == "warptile::matmul" for event in profiler.events())
    assert any("warptile.matmul" in str(node.target) for node in make_fx(matmul)(x).graph.nodes)


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


@pytest.fixture
def unrouted(interpreter: Runtime, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The interpreter's engine as a fresh process has it."""
    from warptile.runtimes.triton.engine import engine_of

    engine = engine_of(torch.device("cpu"))
    monkeypatch.setattr(engine, "routers", [])
    monkeypatch.setattr(engine, "_routes", {})
    return engine


def test_the_public_matmul_takes_tensors_and_asks_the_table(
    unrouted: Any, weight: QuantTensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measured: that very tile, and no word. At another m, or after a change of driver, a word and still right."""
    import warptile
    from warptile.kernels import parse_tile
    from warptile.torch_ops import matmul_torch

    monkeypatch.setattr(Places, "default", staticmethod(lambda: Places.under(tmp_path)))
    identity, x = unrouted.backend.identity(), activations(2)
    problem = Problem("Q4_K", N, K, 2, "fp16", "fp16")
    kernel, tile = parse_tile(TILE)
    valid = Validity(identity.driver, identity.compiler, unrouted.key(kernel, tile, problem), PROOF_VERSION)
    table = Table.load(tmp_path / "state" / "tables", identity)
    won = Point(2, tile.text(), tile.text(), 1e-3, 2e-3, 2.0, 1.9, 2.1, 0.0, "accept", "", valid, 40)
    table.put(problem, weight.format.layout.name, won)
    table.save()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = warptile.matmul(x, weight)
    assert torch.equal(y, matmul_torch(x, weight, tile=TILE))
    assert unrouted.tile(problem) == tile.text()
    with pytest.warns(UntunedWarning, match="m = 4 was not measured"):
        warptile.matmul(activations(4), weight)
    assert warptile.matmul(x, weight, device="interpreter:0").shape == (2, N)


def test_each_type_is_served_by_its_own_points(
    unrouted: Any, weight: QuantTensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table measured in fp16 says nothing of bf16, whose rules differ."""
    import warptile
    from warptile.kernels import parse_tile

    monkeypatch.setattr(Places, "default", staticmethod(lambda: Places.under(tmp_path)))
    identity = unrouted.backend.identity()
    table = Table.load(tmp_path / "state" / "tables", identity)
    tiles = {"fp16": TILE, "bf16": TILE.replace("split_k=2", "operand=bf16"), "fp32": TILE + ",operand=tf32"}
    for dtype, text in tiles.items():
        problem = Problem("Q4_K", N, K, 2, dtype, dtype)
        kernel, tile = parse_tile(text)
        valid = Validity(identity.driver, identity.compiler, unrouted.key(kernel, tile, problem), PROOF_VERSION)
        won = Point(2, tile.text(), tile.text(), 1e-3, 2e-3, 2.0, 1.9, 2.1, 0.0, "accept", "", valid, 40)
        table.put(problem, weight.format.layout.name, won)
    table.save()
    for dtype, kind in (("bf16", torch.bfloat16), ("fp32", torch.float32), ("fp16", torch.float16)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert warptile.matmul(activations(2).to(kind), weight).dtype == kind
        assert unrouted.tile(Problem("Q4_K", N, K, 2, dtype, dtype)) == parse_tile(tiles[dtype])[1].text()


def test_a_device_that_is_not_the_tensors_own_is_refused(
    unrouted: Any, weight: QuantTensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    import warptile

    with pytest.raises(UnusableInput, match="x is on cpu, device 'cuda:0' was asked for"):
        warptile.matmul(activations(2), weight, device="cuda:0")
    monkeypatch.delenv("TRITON_INTERPRET")
    with pytest.raises(UnusableInput, match="tensor on cpu: move it to a CUDA or ROCm device, or pass a numpy array"):
        warptile.matmul(activations(2), weight)


def test_a_session_on_a_triton_device_serves_arrays(interpreter: Runtime, weight: QuantTensor, tmp_path: Path) -> None:
    """fp32 in and out through the interpreter, weights packed the way its kernels read them."""
    x = np.random.default_rng(1).standard_normal((2, K), np.float32)
    with Session("interpreter:0", Places.under(tmp_path)) as session, pytest.warns(UntunedWarning):
        y = session.matmul(x, weight)
    want = x.astype(np.float64) @ weight.dequantize().astype(np.float64).T
    sums = np.abs(x).astype(np.float64) @ np.abs(weight.dequantize()).astype(np.float64).T
    assert (np.abs(y - want) <= 2.0**-6 * sums).all()  # operands rounded to 8 bits at worst (bf16), both, with slack 2


@pytest.mark.parametrize(
    ("x", "options", "error", "says"),
    [
        (torch.zeros(2, K + 256, dtype=torch.float16), {}, UnusableInput, r"the last axis must be 512"),
        (torch.zeros(2, K, dtype=torch.int8), {}, UnusableInput, "not torch.int8"),
        (torch.zeros(2, K, dtype=torch.float16, device="meta"), {}, UnusableInput, "x is on meta, w on cpu"),
        (torch.zeros(2, K, dtype=torch.float64), {}, UnusableInput, "not torch.float64"),
        (torch.zeros((), dtype=torch.float16), {}, UnusableInput, "the last axis must be 512"),
        (torch.zeros(2, K, dtype=torch.float16).to_sparse(), {}, UnusableInput, "strided"),
        (np.zeros((2, K), np.float16), {}, UnusableInput, "not a ndarray"),
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


def test_a_tensor_of_a_real_file_is_packed_and_multiplied(interpreter: Runtime, unrouted: Any, tmp_path: Path) -> None:
    """SmolLM2's Q4_1 of k = 576, which makes steps of 64: as a tensor op, and as an array through a session."""
    from warptile.layouts.triton import pack_rows
    from warptile.torch_ops import TorchWeight, matmul_served

    w = QuantTensor.from_gguf(smollm2(), "blk.0.attn_k.weight")
    assert (w.format.name, w.shape) == ("Q4_1", (192, 576))
    host, _ = pack_rows(w.format, w.blocks, 576)
    np.testing.assert_array_equal(TorchWeight.pack(w, "cpu").words.numpy().view(np.uint32), host)
    x = np.random.default_rng(2).standard_normal((2, 576), np.float32)
    dense = w.dequantize().astype(np.float64)
    want, sums = x @ dense.T, np.abs(x) @ np.abs(dense).T
    with pytest.warns(UntunedWarning):
        y = matmul_served(torch.from_numpy(x).half(), w, places=Places.under(tmp_path))
    # x, w and y rounded to fp16, and room for decoding in fp16: 4 u each of the sum of magnitudes.
    assert (np.abs(y.double().numpy() - want) <= 2.0**-8 * sums).all()
    with Session("interpreter:0", Places.under(tmp_path)) as session, pytest.warns(UntunedWarning):
        array = session.matmul(x, w)
    assert (np.abs(array - want) <= 2.0**-6 * sums).all()


def test_words_that_are_not_the_weights_own_are_refused(interpreter: Runtime, weight: QuantTensor) -> None:
    """A kernel would read past them: the op is public, and so is `TorchWeight`."""
    from warptile.torch_ops import TorchWeight, matmul_torch

    good = TorchWeight.pack(weight, "cpu")
    for words, says in (
        (good.words[:-1], "takes"),
        (good.words.float(), "int32"),
        (good.words.repeat_interleave(2)[::2], "contiguous"),
    ):
        with pytest.raises(UnusableInput, match=says):
            matmul_torch(activations(2), TorchWeight(words, "Q4_K", N, K), tile=TILE)
    with pytest.raises(UnusableInput, match="Q9_Z"):
        matmul_torch(activations(2), TorchWeight(good.words, "Q9_Z", N, K), tile=TILE)
    with pytest.raises(UnusableInput, match="a weight is a QuantTensor or a TorchWeight, not a Tensor"):
        matmul_torch(activations(2), torch.zeros(N, K))  # type: ignore[arg-type]


@pytest.mark.parametrize("device", ["cuda:77", "cudda"])
def test_a_device_that_is_not_here_is_refused_in_words(weight: QuantTensor, device: str) -> None:
    """A typo, or one card more than there are: torch's own error names neither."""
    from warptile.torch_ops import TorchWeight

    with pytest.raises(UnusableInput, match=device):
        TorchWeight.pack(weight, device)


def test_the_fake_refuses_what_the_op_refuses(interpreter: Runtime, weight: QuantTensor) -> None:
    """Under torch.compile a wrong shape must not become a graph that fails on the device."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    from warptile.torch_ops import TorchWeight

    good = TorchWeight.pack(weight, "cpu")
    with FakeTensorMode() as mode:
        words = mode.from_tensor(good.words)
        for x in (torch.zeros(2, K + 1, dtype=torch.float16), torch.zeros(2, K, dtype=torch.int8)):
            with pytest.raises(UnusableInput):
                torch.ops.warptile.matmul(x, words, "Q4_K", N, K, TILE, False)


def test_a_host_tensor_without_the_interpreter_is_refused(
    interpreter: Runtime, weight: QuantTensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from warptile.torch_ops import TorchWeight

    monkeypatch.delenv("TRITON_INTERPRET")
    with pytest.raises(UnusableInput, match="CUDA or ROCm tensors; this one is on cpu"):
        TorchWeight.pack(weight, "cpu")
