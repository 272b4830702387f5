"""`triton.gemv_mma`: its twin in Triton's interpreter on every kind of scale and code, its rules, and what the compiler
makes of the Gluon kernel for a card that is not here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.ptx import plain, run
from warptile import devices, formats, kernels
from warptile.contracts import Limits, Problem, Runtime
from warptile.kernels.triton.gemv_mma.rules import shared_bytes
from warptile.kernels.triton.gemv_mma.tile import GemvMmaTile
from warptile.proof.bounds import activation_moves
from warptile.proof.proving import prove
from warptile.proof.weights import random_blocks as sane_blocks
from warptile.weights import QuantTensor

torch = pytest.importorskip("torch")

Q4_K = Problem("Q4_K", 4096, 14336, 1, "fp16", "fp16")
KERNEL = kernels.by_name("triton.gemv_mma")
# One format a kind of scale, and those whose codes are held in a way of their own.
FORMATS = ("Q4_K", "Q6_K", "Q3_K", "Q2_K", "Q5_1", "IQ4_XS", "IQ2_XXS", "MXFP4", "NVFP4", "TQ1_0", "PTQ1_0")
TILE = "triton.gemv_mma:tile_n=16,tile_m=2,split_k=1,warps=2,steps=1,ahead=1"


@pytest.fixture(scope="module")
def h200() -> Limits:
    return devices.by_name("h200", "cuda")


@pytest.mark.parametrize("name", FORMATS)
def test_the_twin_decodes_every_kind_of_scale(interpreter: Runtime, name: str) -> None:
    """fp16 sums of 512 products: a relative mean square error near 2^-24 (see `test_device_code`)."""
    from warptile.torch_ops import TorchWeight, matmul_torch

    found = formats.by_name(name)
    n, k, m = 18, 512, 3
    w = QuantTensor.from_blocks(found, sane_blocks(found, n * k // found.block_size, np.random.default_rng(1)), (n, k))
    x = torch.randn((m, k), generator=torch.Generator().manual_seed(0)).half()
    want = x.double().numpy() @ w.dequantize().astype(np.float64).T
    y = matmul_torch(x, TorchWeight.pack(w, "cpu"), tile=TILE).double().numpy()
    assert np.square(y - want).sum() / np.square(want).sum() < 1e-6


def test_activations_far_from_fp16s_range(interpreter: Runtime) -> None:
    """bf16 and fp32 rows beyond fp16's largest and below its smallest number, beside each other and within one row."""
    from warptile.torch_ops import TorchWeight, matmul_torch

    found = formats.by_name("Q8_0")
    w = QuantTensor.from_blocks(found, sane_blocks(found, 16 * 512 // 32, np.random.default_rng(2)), (16, 512))
    packed, dense = TorchWeight.pack(w, "cpu"), w.dequantize().astype(np.float64)
    x = torch.randn((4, 512), generator=torch.Generator().manual_seed(1))
    x *= torch.tensor([1e12, 1e-12, 1.0, 0.0])[:, None]
    x[2, ::2] *= 1e6
    for dtype, limit in ((torch.bfloat16, 2e-4), (torch.float32, 1e-6)):
        rows = x.to(dtype)
        want = rows.double().numpy() @ dense.T
        y = matmul_torch(rows, packed, tile=TILE).double().numpy()
        for got, right in zip(y[:3], want[:3], strict=True):
            assert np.square(got - right).sum() / np.square(right).sum() < limit
        assert (y[3] == 0).all()


def test_the_proof_accepts_ragged_tiles(interpreter: Runtime) -> None:
    kernel, tile = kernels.parse_tile("triton.gemv_mma:tile_n=16,tile_m=2,split_k=1,warps=2,steps=1,ahead=1")
    problem = Problem("Q4_K", 17, 256, 3, "fp16", "fp16")
    verdict = prove(interpreter, kernel, tile, problem)
    assert verdict.right, verdict.detail


def test_activations_over_their_largest_move_by_less_than_tf32() -> None:
    over = activation_moves("fp16 over its largest", "fp32")
    assert over.beta <= activation_moves("tf32", "fp32").beta
    assert activation_moves("fp16 over its largest", "bf16").beta == 0


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"tile_n": 64}, "tile_n is 16 or 32 a row warp, warps at least those"),
        ({"row_warps": 8, "tile_n": 128, "warps": 4}, "tile_n is 16 or 32 a row warp, warps at least those"),
        ({"warps": 1, "steps": 1}, "what warps take at once is whole superblocks"),
        ({"steps": 4}, "steps <= 2"),
        ({"ahead": 4}, "1 <= ahead <= 3"),
        ({"split_k": 64}, "every part of k has a step"),
        ({"tile_m": 16, "tile_n": 32}, "shared bytes fit a program"),
        ({"registers": 16}, "registers is 0 or 32 to the most a thread has"),
        ({"direct": 1}, "direct is 0, or 1 for fp16 and bf16 rows, at least 8 a tile"),
        ({"direct": 2, "tile_m": 8}, "direct is 0, or 1 for fp16 and bf16 rows, at least 8 a tile"),
        ({"split_k": 0}, "split_k >= 1"),
        ({"lean": 2}, "lean is 0 or 1"),
    ],
)
def test_a_broken_rule_is_named(h200: Limits, changed: dict[str, int], rule: str) -> None:
    tile = GemvMmaTile(**{"tile_n": 16, "tile_m": 1, **changed})
    assert [b.rule for b in KERNEL.broken_rules(tile, Q4_K, h200)] == [rule]


def test_dependent_launches_are_for_cards_that_have_them(h200: Limits) -> None:
    early = GemvMmaTile(16, 1, pdl=1)
    assert not KERNEL.broken_rules(early, Q4_K, h200)
    (rule,) = KERNEL.broken_rules(early, Q4_K, devices.by_name("rtx-4070", "cuda"))
    assert rule.well_formed
    assert not KERNEL.broken_rules(GemvMmaTile(16, 1), Q4_K, devices.by_name("rtx-4070", "cuda"))


def test_copied_rows_are_of_16_bits(h200: Limits) -> None:
    """What the copies cannot do is refused before it is compiled; an odd number of parts is not."""
    tile = GemvMmaTile(64, 8, 7, 4, 4, 2, 2, direct=1)
    for dtype in ("fp16", "bf16"):
        assert not KERNEL.broken_rules(tile, replace(Q4_K, x_dtype=dtype, y_dtype=dtype), h200)
    assert KERNEL.broken_rules(tile, replace(Q4_K, x_dtype="fp32", y_dtype="fp32"), h200)
    assert not KERNEL.broken_rules(tile, Q4_K, devices.by_name("rtx-4070", "cuda"))


def test_untuned_tiles_say_how_many_registers_they_may_take(h200: Limits) -> None:
    """Left to itself the compiler takes what keeps other programs off the unit."""
    for format in ("Q4_K", "Q6_K", "Q8_0", "PTQ1_0"):
        tiles = list(KERNEL.space(replace(Q4_K, format=format, m=8), h200))
        assert tiles
        assert all(t.fields()["registers"] for t in tiles)


@pytest.mark.parametrize(
    ("name", "tile", "most", "matrix"),
    [
        ("Q4_K", "tile_n=16,tile_m=1,warps=8,steps=2,ahead=2,pdl=1,registers=128", 2.5, 32),
        (
            "Q4_K",
            "tile_n=64,tile_m=8,split_k=8,warps=4,row_warps=4,steps=2,ahead=2,pdl=1,registers=128,direct=1",
            2.5,
            32,
        ),
        ("Q6_K", "tile_n=16,tile_m=1,warps=8,steps=1,ahead=2,pdl=1,registers=96,lean=1", 3.6, 16),
    ],
)
def test_few_instructions_and_no_spill_for_hopper(
    tmp_path: Path, h200: Limits, name: str, tile: str, most: float, matrix: int
) -> None:
    """Codes, scales and sums stay in registers: few instructions a weight, none on a thread's own memory."""
    script = Path(__file__).parents[3] / "benchmarks" / "instructions.py"
    tile = f"triton.gemv_mma:{tile}"
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(script), "--json", "--device", "h200", name, "4096", "14336", "1", "fp16", tile],
        capture_output=True, text=True, timeout=120, env=environment, check=False,
    )  # fmt: skip
    if "cuobjdump" in done.stderr:
        pytest.skip("this Triton brings no cuobjdump")
    assert done.returncode == 0, done.stderr[-2000:]
    (found,) = json.loads(done.stdout)
    assert found["a_weight"] <= most
    assert found["matrix"] == matrix
    assert found["loop_accesses"] == 0
    assert found["shared"] == shared_bytes(kernels.parse_tile(tile)[1], replace(Q4_K, format=name))  # type: ignore[arg-type]


def test_signed_bytes_multiply_both_halves() -> None:
    """A scale of eight bits is exact beside its factors, and one of zero takes even the largest factor to zero."""
    scales_module = pytest.importorskip("warptile.kernels.triton.gemv_mma.scales")
    scales = np.array([-128, -127, -1, 0, 1, 2, 63, 127] * 4, np.int8)
    low, high = np.float16(0.0123), np.float16(-7.5)
    pair = np.full(32, low.view(np.uint16).astype(np.uint32) | np.uint32(high.view(np.uint16)) << np.uint32(16))
    found = run(plain(scales_module.eight_text)(), {1: scales.view(np.uint8).astype(np.uint32), 2: pair})[0]
    halves = found.view(np.float16).reshape(32, 2)
    assert (halves[:, 0] == scales.astype(np.float16) * low).all()
    assert (halves[:, 1] == scales.astype(np.float16) / np.float16(1024) * high).all()
