"""Device code in Triton's interpreter: every format, every kernel, against the host's own decode."""

from __future__ import annotations

import numpy as np
import pytest
from support.blocks import random_blocks

from warptile import formats, kernels
from warptile.contracts import Problem, Runtime
from warptile.kernels.triton.common import arranged
from warptile.proof.proving import prove
from warptile.proof.weights import random_blocks as sane_blocks
from warptile.weights import QuantTensor

torch = pytest.importorskip("torch")

FORMATS = list(formats.all_formats())
# Rounded to fp16 (unit roundoff 2^-11), a sum of k products has a relative mean square error near 2^-24; bf16's is 2^6
# times that, squared; double rounding in the interpreter's fp16 takes a factor of a few.
NMSE = {"fp16": 1e-6, "bf16": 2e-4, "fp32": 1e-6}
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}


def gemm(step: int, operand: str, decode: str) -> str:
    return f"triton.gemm:tile_n=16,tile_m=8,tile_k={step},split_k=2,warps=1,operand={operand},decode={decode}"


@pytest.mark.parametrize("name", FORMATS)
def test_dense_weights_equal_the_reference_to_the_bit(interpreter: Runtime, name: str) -> None:
    """Any byte pattern: dequantized to fp32 on the device as the format's reference decodes it."""
    from warptile.kernels.triton.dequantize.device import dequantize
    from warptile.layouts.triton import arrangement, pack_rows
    from warptile.layouts.triton.parameters import decoder_parameters

    found = formats.by_name(name)
    for blocks in (1, 3):
        n, k = 21, max(32, found.block_size) * blocks
        data = random_blocks(found, n * k // found.block_size, blocks)
        words, starts = pack_rows(found, data.reshape(n, -1), k)
        arranged = arrangement(found.layout, k)
        out, executed = torch.zeros(n, k), torch.zeros(1, dtype=torch.uint32)
        planes = ((*starts[:-1], *(0,) * 6)[:6], starts[-1])
        grid = (-(-k // arranged.step // 2), 2, 1)
        with np.errstate(all="ignore"):
            dequantize[grid](
                torch.from_numpy(words.view(np.int32)), out, executed, n, k, *planes[0], planes[1],
                L=decoder_parameters(arranged), TILE_N=16, STEPS=2, STAGES=1, DECODE="plain", BUILD_ID=0xFEEDBEEF,
            )  # fmt: skip
        want, got = found.decode(data).reshape(n, k), out.numpy()
        same = (
            (got.view(np.uint32) == want.view(np.uint32))
            | (np.isnan(got) & np.isnan(want))
            | ((got == 0) & (want == 0))
        )
        assert same.all(), f"k={k}: {got[~same][:3]} for {want[~same][:3]}"
        assert int(executed.view(torch.int32)) & 0xFFFFFFFF == 0xFEEDBEEF


@pytest.mark.parametrize("name", FORMATS)
def test_matmul_of_every_format(interpreter: Runtime, name: str) -> None:
    from warptile.torch_ops import TorchWeight, matmul_torch

    found = formats.by_name(name)
    n, k, m = 37, max(256, 2 * found.block_size), 5
    blocks = sane_blocks(found, n * k // found.block_size, np.random.default_rng(1))
    w = QuantTensor.from_blocks(found, blocks, (n, k))
    packed, dense = TorchWeight.pack(w, "cpu"), w.dequantize().astype(np.float64)
    step = arranged(Problem(name, n, k, m)).step
    for dtype, operand, decode in (("fp16", "fp16", "half"), ("bf16", "bf16", "half"), ("fp32", "tf32", "plain")):
        x = torch.randn((m, k), generator=torch.Generator().manual_seed(0)).to(DTYPES[dtype])
        want = x.double().numpy() @ dense.T
        for tile in (gemm(step, operand, decode), f"triton.gemv:tile_n=8,tile_m=2,steps=2,warps=1,decode={decode}"):
            y = matmul_torch(x, packed, tile=tile).double().numpy()
            assert np.square(y - want).sum() / np.square(want).sum() < NMSE[dtype], (dtype, tile)


@pytest.mark.parametrize(
    ("name", "kind"), [("Q4_K", "gemm"), ("PTQ1_0", "gemm"), ("NVFP4", "gemv"), ("Q8_0", "dequantize")]
)
def test_the_proof_accepts_every_kernel(interpreter: Runtime, name: str, kind: str) -> None:
    """Guard bands, poisoned output, boundary shapes, exact inputs, per-element bounds, executed ids: as on Vulkan."""
    texts = {
        "gemm": gemm(128, "fp16", "half"),
        "gemv": "triton.gemv:tile_n=8,tile_m=2,steps=2,warps=1",
        "dequantize": "triton.dequantize:tile_n=16,warps=1",
    }
    kernel, tile = kernels.parse_tile(texts[kind])
    problem = Problem(name, 33, 512, 5, "fp16", "fp16")
    verdict = prove(interpreter, kernel, tile, problem)
    assert verdict.right, verdict.detail
    assert verdict.binary == interpreter.compile(kernel.source(tile, problem, interpreter.limits())).id
    assert {m for m, _, _ in verdict.shapes} >= {1}
    assert len(verdict.shapes) >= 8


def test_the_proof_rejects_a_kernel_that_reads_the_neighbours_scale(
    interpreter: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted fault in the decoder's parameters: the groups' minimums are left out."""
    from warptile.kernels.triton import common

    right = common.parameters

    def wrong(problem: Problem) -> tuple[object, ...]:
        return (*right(problem)[:16], 0)

    monkeypatch.setattr(common, "parameters", wrong)
    kernel, tile = kernels.parse_tile(gemm(128, "fp16", "plain"))
    verdict = prove(interpreter, kernel, tile, Problem("Q4_K", 33, 512, 5, "fp16", "fp16"))
    assert not verdict.right
