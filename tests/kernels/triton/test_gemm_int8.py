"""`triton.gemm_int8` in Triton's interpreter: the codes it makes of activations, every format, the proof, its tiles."""

from __future__ import annotations

import numpy as np
import pytest

from warptile import devices, formats, kernels
from warptile.contracts import Problem, Runtime
from warptile.kernels.triton.common import arranged
from warptile.kernels.triton.gemm_int8.blocks import Blocks, blocks_of
from warptile.kernels.triton.gemm_int8.space import COLUMN_TILES
from warptile.kernels.triton.gemm_int8.tile import GemmInt8Tile
from warptile.proof.proving import prove
from warptile.proof.weights import random_blocks as sane_blocks
from warptile.weights import QuantTensor

torch = pytest.importorskip("torch")

FORMATS = list(formats.all_formats())
Q4_K = Problem("Q4_K", 4096, 14336, 128, "fp16", "fp16")


def tile(step: int) -> str:
    return f"triton.gemm_int8:tile_n=16,tile_m=8,tile_k={step},warps=1"


def quantized(x: np.ndarray, block: int) -> np.ndarray:
    """x[m, k] as int8 codes times their block's scale, the largest magnitude over 127."""
    parts = x.reshape(len(x), -1, block)
    scale = np.abs(parts).max(axis=2, keepdims=True) / 127
    return (np.rint(parts / np.where(scale > 0, scale, 1)) * scale).reshape(x.shape)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_every_format_times_quantized_activations(interpreter: Runtime, name: str, dtype: torch.dtype) -> None:
    """Against float64 sums over the same codes. y in bf16 is off by 2^-7 at most (the interpreter cuts); elsewhere one
    code in thousands may be rounded the other way at a tie: 1 / 127 of a block's largest value, for one of hundreds."""
    from warptile.torch_ops import TorchWeight, matmul_torch

    found = formats.by_name(name)
    n, k, m = 37, max(256, 2 * found.block_size), 5
    problem = Problem(name, n, k, m)
    blocks = sane_blocks(found, n * k // found.block_size, np.random.default_rng(1))
    w = QuantTensor.from_blocks(found, blocks, (n, k))
    x = torch.randn((m, k), generator=torch.Generator().manual_seed(0)).to(dtype)
    x[1] = 0
    want = quantized(x.double().numpy(), blocks_of(problem).size) @ w.dequantize().astype(np.float64).T
    y = matmul_torch(x, TorchWeight.pack(w, "cpu"), tile=tile(arranged(problem).step)).double().numpy()
    assert np.square(y - want).sum() / np.square(want).sum() < (2.0**-14 if dtype is torch.bfloat16 else 1e-6)
    assert (y[1] == 0).all()


def test_rows_that_are_not_whole_steps_of_128_are_served(interpreter: Runtime) -> None:
    """k = 96 and 64: steps of one and of two chunks."""
    from warptile.torch_ops import TorchWeight, matmul_torch

    for name, k in (("Q4_1", 96), ("Q8_0", 64), ("Q5_0", 160), ("Q2_0", 192), ("NVFP4", 64)):
        found = formats.by_name(name)
        blocks = sane_blocks(found, 21 * k // found.block_size, np.random.default_rng(2))
        w = QuantTensor.from_blocks(found, blocks, (21, k))
        x = torch.randn((3, k), generator=torch.Generator().manual_seed(0))
        problem = Problem(name, 21, k, 3)
        want = quantized(x.double().numpy(), blocks_of(problem).size) @ w.dequantize().astype(np.float64).T
        y = matmul_torch(x, TorchWeight.pack(w, "cpu"), tile=tile(arranged(problem).step)).double().numpy()
        assert np.square(y - want).sum() / np.square(want).sum() < 1e-6, (name, k)


def test_an_activation_that_is_not_finite_reaches_every_output_of_its_row(interpreter: Runtime) -> None:
    from warptile.torch_ops import TorchWeight, matmul_torch

    found = formats.by_name("Q4_0")
    w = QuantTensor.from_blocks(found, sane_blocks(found, 16 * 4, np.random.default_rng(3)), (16, 128))
    x = torch.ones((3, 128))
    x[0, 5], x[2, 100] = float("nan"), float("inf")
    y = matmul_torch(x, TorchWeight.pack(w, "cpu"), tile=tile(128))
    assert torch.isnan(y[[0, 2]]).all()
    assert torch.isfinite(y[1]).all()


@pytest.mark.parametrize(("name", "k"), [("Q4_K", 256), ("Q6_K", 256), ("TQ1_0", 256), ("Q4_0", 96)])
def test_the_proof_accepts_it(interpreter: Runtime, name: str, k: int) -> None:
    problem = Problem(name, 33, k, 5, "fp16", "fp16")
    kernel, parsed = kernels.parse_tile(tile(arranged(problem).step))
    verdict = prove(interpreter, kernel, parsed, problem)
    assert verdict.right, verdict.detail
    assert 0.01 < verdict.worst_ratio <= 1


def test_the_proof_rejects_minimums_left_out(interpreter: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault in the decoder's parameters."""
    from warptile.kernels.triton import common

    right = common.parameters

    def wrong(problem: Problem) -> tuple[object, ...]:
        return (*right(problem)[:16], 0, *right(problem)[17:])

    monkeypatch.setattr(common, "parameters", wrong)
    kernel, parsed = kernels.parse_tile(tile(128))
    assert not prove(interpreter, kernel, parsed, Problem("Q4_K", 33, 256, 5, "fp16", "fp16")).right


@pytest.mark.parametrize(
    ("name", "k", "blocks"),
    [
        ("Q4_K", 512, Blocks(32, 1)),
        ("Q6_K", 512, Blocks(32, 2)),
        ("Q8_0", 96, Blocks(32, 1)),
        ("Q2_0", 64, Blocks(64, 1)),
        ("PTQ1_0", 256, Blocks(128, 1)),
        ("TQ2_0", 256, Blocks(128, 1)),
        ("TQ1_0", 256, Blocks(256, 1)),
    ],
)
def test_blocks_are_as_long_as_one_scale_of_the_weights_lasts(name: str, k: int, blocks: Blocks) -> None:
    assert blocks_of(Problem(name, 64, k, 1)) == blocks


def test_column_tiles_stock_and_rules() -> None:
    kernel, card = kernels.by_name("triton.gemm_int8"), devices.by_name("rtx-4070", "cuda")
    space = [t for m in (1, 8, 32, 128, 512) for t in kernel.space(Q4_K.at(m), card)]
    assert {t.tile_m for t in space if isinstance(t, GemmInt8Tile)} == set(COLUMN_TILES)
    for m, column in ((1, 8), (9, 16), (64, 64), (129, 128)):
        stock = kernel.stock(Q4_K.at(m), card)
        assert isinstance(stock, GemmInt8Tile)
        assert stock.tile_m == column
        assert not kernel.broken_rules(stock, Q4_K.at(m), card)
    wrong = GemmInt8Tile(64, 64, 64)
    assert [b.rule for b in kernel.broken_rules(wrong, Q4_K, card)] == [
        "tile_k is the step of the weights' arrangement"
    ]
    assert kernel.broken_rules(GemmInt8Tile(64, 4, 128), Q4_K, card)
    assert kernel.broken_rules(GemmInt8Tile(64, 64, 128), Q4_K, devices.by_name("rtx-4070"))


def test_nothing_unmeasured_is_served_by_a_kernel_that_quantizes(interpreter: Runtime) -> None:
    from warptile.runtimes.triton.engine import engine_of

    engine = engine_of(torch.device("cpu"))
    for name in ("Q4_0", "Q6_K", "PTQ1_0"):
        for m in (1, 16, 128):
            assert not engine.tile(Problem(name, 128, 256, m, "fp16", "fp16")).startswith("triton.gemm_int8")
