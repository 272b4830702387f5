"""`triton.gemv_trits`: its PTX on numpy, against the file's decoding; its twin in Triton's interpreter; its rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.ptx import plain, run
from warptile import devices, formats, kernels
from warptile.contracts import Limits, Problem, Runtime
from warptile.kernels.triton.gemv_trits.tile import GemvTritsTile
from warptile.layouts.triton import arrangement
from warptile.proof.bounds import activation_moves
from warptile.proof.proving import prove
from warptile.proof.weights import random_blocks
from warptile.weights import QuantTensor

torch = pytest.importorskip("torch")

FORMAT = formats.by_name("PTQ1_0")
KERNEL = kernels.by_name("triton.gemv_trits")
TILE = "triton.gemv_trits:row_warps=1,tile_m=2,split_k=1,warps=2,steps=1,ahead=1"


def rows(n: int, k: int, seed: int) -> QuantTensor:
    """Random bytes, those that no encoder makes among them, and plain scales."""
    return QuantTensor.from_blocks(FORMAT, random_blocks(FORMAT, n * k // 128, np.random.default_rng(seed)), (n, k))


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("brain", [False, True])
def test_a_warps_products_are_those_of_the_formats_own_numbers(brain: bool, upper: bool) -> None:
    """One block of 16 rows and two tokens through both texts, lane by lane: what the card computes between loads."""
    device_text = pytest.importorskip("warptile.kernels.triton.gemv_trits.device_text")
    staging, product, words = plain(device_text.staging_text)(brain), plain(device_text.product_text)(), 10
    if upper:
        text = pytest.importorskip("warptile.kernels.triton.gemv_trits.upper_text")
        staging, product, words = plain(text.upper_staging_text)(brain), plain(text.upper_product_text)(), 18
    w = rows(16, 128, 3)
    rng = np.random.default_rng(4)
    x = torch.from_numpy(rng.standard_normal((2, 128)) * np.float64(1000.0) ** rng.uniform(-1, 0.5, (2, 1)))
    x = x.to(torch.bfloat16 if brain else torch.float16)
    lanes = np.arange(32)
    row, quad = lanes // 4, lanes % 4
    columns = np.zeros((8, 4, words), np.uint32)
    unit = np.zeros((2, 32), np.uint32)
    for token in range(2):
        pairs = x[token].view(torch.int16).numpy().view(np.uint32)
        found = run(staging, {3 * words + 1 + slot: pairs[4 * slot + quad] for slot in range(16)})
        for word in range(words):
            for plane in range(3):
                columns[4 * token + plane, :, word] = found[3 * word + plane][:4]
        unit[token] = found[3 * words]
    planes = [plane.reshape(16, -1) for plane in packed_planes(w)]
    given: dict[int, np.ndarray] = {}
    for half in range(2):
        given[4 + half] = planes[0][row + 8 * half, quad]
        given[6 + half] = planes[1][row + 8 * half, quad]
        given[8 + half] = planes[2][row + 8 * half, 0]
    for word in range(words):
        given[10 + word] = columns[row, quad, word]
    given[10 + words] = unit[quad // 2, lanes]
    given[11 + words] = 3**quad
    given |= {12 + words + i: np.zeros(32, np.float32) for i in range(4)}
    given = {n: v.astype(np.uint32) if v.dtype != np.float32 else v for n, v in given.items()}
    found = run(product, given)
    sums = np.zeros((16, 8))
    for i in range(4):
        sums[row + 8 * (i // 2), 2 * quad + i % 2] = found[i].view(np.float32)
    got = sums.reshape(16, 2, 4)[..., :3] @ np.array([1.0, 256.0, 65536.0])
    want = w.dequantize().astype(np.float64) @ x.double().numpy().T
    # Half a unit of 2^-19 (2^-18) of the largest number for each of 128 products, and fp32's rounding of the sums.
    room = (2.0**-19 if upper else 2.0**-20) * x.double().abs().amax(1).numpy() * np.abs(w.dequantize()).sum(1)[:, None]
    assert (np.abs(got - want) <= room + 2.0**-22 * np.abs(want)).all()
    assert np.abs(got - want).max() > 0 or brain


def packed_planes(w: QuantTensor) -> list[np.ndarray]:
    """The code planes' words of 16 rows and one block, [rows, words] each, zero-extended."""
    arranged = arrangement(FORMAT.layout, w.shape[1])
    planes = arranged.to_planes(FORMAT.split(w.blocks.reshape(-1, FORMAT.block_bytes)))
    return [plane.astype(np.uint32) for plane in planes[:3]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_twin_agrees_with_the_formats_own_numbers(interpreter: Runtime, dtype: str) -> None:
    """Rows far from each other in size, and a tile that ends within the last rows; k split among programs."""
    from warptile.torch_ops import TorchWeight, matmul_torch

    n, k = 18, 512
    w = rows(n, k, 1)
    x = torch.randn((2, k), generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 300.0])[:, None]
    x = x.to(getattr(torch, dtype))
    want = x.double().numpy() @ w.dequantize().astype(np.float64).T
    for tile in (TILE, TILE.replace("split_k=1", "split_k=2"), f"{TILE},upper=1"):
        y = matmul_torch(x, TorchWeight.pack(w, "cpu"), tile=tile).double().numpy()
        rounding = 2.0**-10 if dtype == "float16" else 2.0**-7
        assert np.abs(y - want).max() <= rounding * np.abs(want).max()


@pytest.mark.parametrize("text", [TILE, f"{TILE},upper=1"])
def test_the_proof_accepts_ragged_tiles(interpreter: Runtime, text: str) -> None:
    kernel, tile = kernels.parse_tile(text)
    verdict = prove(interpreter, kernel, tile, Problem("PTQ1_0", 17, 256, 2, "fp16", "fp16"))
    assert verdict.right, verdict.detail


def test_fixed_point_moves_less_than_fp16() -> None:
    """A block's numbers keep 18 bits or more below its largest: rows move by less than fp16's own rounding of it."""
    assert activation_moves("fixed 128", "fp16").spread <= 2.0**-20
    assert activation_moves("fixed 128, a bit less", "fp16").spread <= 2.0**-19
    assert not KERNEL.arithmetic(GemvTritsTile(1, 1), Problem("PTQ1_0", 16, 256, 1, "fp16")).quantizes_activations


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"format": "TQ1_0"}, "weights are base-3 bytes in blocks of 128"),
        ({"format": "Q4_K"}, "weights are base-3 bytes in blocks of 128"),
        ({"x_dtype": "fp32"}, "x is fp16 or bf16"),
        ({"m": 3}, "m, tile_m <= 2"),
    ],
)
def test_a_problem_it_does_not_serve_is_named(changed: dict[str, object], rule: str) -> None:
    h200: Limits = devices.by_name("h200", "cuda")
    problem = replace(Problem("PTQ1_0", 4096, 14336, 1, "fp16", "fp16"), **changed)  # type: ignore[arg-type]
    assert rule in [b.rule for b in KERNEL.broken_rules(GemvTritsTile(1, 1), problem, h200)]
    assert not KERNEL.broken_rules(GemvTritsTile(1, 1), Problem("PTQ1_0", 4096, 14336, 1, "bf16", "bf16"), h200)


def test_a_program_that_no_unit_has_registers_for_is_refused() -> None:
    """Such a tile compiles, and fails only when it is launched."""
    h200: Limits = devices.by_name("h200", "cuda")
    problem = Problem("PTQ1_0", 4096, 14336, 1, "fp16", "fp16")
    (rule,) = KERNEL.broken_rules(GemvTritsTile(2, 1, 2, 16, registers=168), problem, h200)
    assert rule.rule == "what threads are allowed fits a unit's registers"
    assert not KERNEL.broken_rules(GemvTritsTile(2, 1, 2, 16, registers=128), problem, h200)


def test_upper_is_a_way_of_two() -> None:
    """A way that there is not is refused, and none is tried that no card has shown right."""
    h200: Limits = devices.by_name("h200", "cuda")
    problem = Problem("PTQ1_0", 4096, 14336, 1, "fp16", "fp16")
    assert [b.rule for b in KERNEL.broken_rules(GemvTritsTile(1, 1, upper=2), problem, h200)] == ["upper is 0 or 1"]
    assert not KERNEL.broken_rules(GemvTritsTile(1, 1, upper=1), problem, h200)
    assert {tile.fields()["upper"] for tile in KERNEL.space(problem, h200)} == {0}
