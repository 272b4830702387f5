"""`triton.gemm` with steps shared evenly: what a wrong share would do to y, and what such a tile may be."""

from __future__ import annotations

import numpy as np
import pytest

from warptile import devices, formats, kernels
from warptile.contracts import Problem, Runtime
from warptile.kernels.triton.gemm.tile import GemmTile
from warptile.kernels.triton.shares import shared_evenly
from warptile.proof.proving import prove
from warptile.proof.weights import random_blocks
from warptile.weights import QuantTensor

Q4_K = Problem("Q4_K", 4096, 14336, 512, "fp16", "fp16")


@pytest.mark.parametrize(
    "spread", ["programs=1", "programs=5", "programs=7,rest=1", "programs=3,rest=2", "programs=99"]
)
def test_shared_steps_give_what_whole_tiles_do(interpreter: Runtime, spread: str) -> None:
    """A step that two programs take or none, a part added twice or to another tile, would move y by a step's sum; the
    second launch finds its counters as the first did."""
    torch = pytest.importorskip("torch")
    from warptile.torch_ops import TorchWeight, matmul_torch

    found = formats.by_name("Q4_K")
    blocks = random_blocks(found, 80 * 512 // found.block_size, np.random.default_rng(1))
    w = TorchWeight.pack(QuantTensor.from_blocks(found, blocks, (80, 512)), "cpu")
    x = torch.randn((19, 512), generator=torch.Generator().manual_seed(0)).to(torch.float16)
    base = "triton.gemm:tile_n=16,tile_m=8,tile_k=128,warps=1"
    want = matmul_torch(x, w, tile=f"{base},split_k=1").double()
    first, second = (matmul_torch(x, w, tile=f"{base},split_k=0,{spread}") for _ in range(2))
    # fp32 sums of 512 terms in other orders, each rounded to fp16 once more.
    assert ((first.double() - want).abs() <= 2.0**-10 * want.abs() + 2.0**-12 * want.abs().max()).all()
    assert torch.equal(first, second)


def test_the_proof_accepts_shared_steps(interpreter: Runtime) -> None:
    kernel, tile = kernels.parse_tile("triton.gemm:tile_n=16,tile_m=8,tile_k=128,warps=1,split_k=0,programs=5,rest=1")
    verdict = prove(interpreter, kernel, tile, Problem("Q4_K", 40, 512, 9, "fp16", "fp16"))
    assert verdict.right, verdict.detail


@pytest.mark.parametrize(
    ("tiles", "steps", "programs", "rest"), [(256, 112, 396, 0), (1088, 40, 396, 1), (7, 3, 5, 2), (4, 2, 99, 0)]
)
def test_every_step_is_somebodys(tiles: int, steps: int, programs: int, rest: int) -> None:
    """All steps are someone's, as evenly as whole steps allow, and nobody's share is empty."""
    found = shared_evenly(tiles, steps, programs, rest)
    assert (tiles - found.rest) % found.programs == 0
    assert found.sharers <= found.programs <= programs
    shares = [
        found.rest * steps * (i + 1) // found.sharers - found.rest * steps * i // found.sharers
        for i in range(found.sharers)
    ]
    assert sum(shares) == found.rest * steps
    assert min(shares) >= 1
    assert max(shares) - min(shares) <= 1


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"split_k": 0}, "programs >= 1 with split_k = 0, else no programs and no rest"),
        ({"programs": 4}, "programs >= 1 with split_k = 0, else no programs and no rest"),
        ({"split_k": 0, "programs": 4, "rest": 3}, "rest is 0, 1 or 2"),
        ({"registers": 16}, "registers is 0 or 32 to the most a thread has"),
        ({"paired": 2}, "paired is 0 or 1"),
        ({"paired": 1}, "paired is for scales of a byte made in fp16"),
    ],
)
def test_a_broken_rule_is_named(fields: dict[str, int], rule: str) -> None:
    kernel = kernels.by_name("triton.gemm")
    broken = kernel.broken_rules(GemmTile(64, 128, 128, **fields), Q4_K, devices.by_name("h200", "cuda"))
    assert [b.rule for b in broken] == [rule]


def test_what_only_nvidia_has_is_refused_elsewhere() -> None:
    """A cap on registers would be dropped without a word, and PTX would not compile."""
    kernel = kernels.by_name("triton.gemm")
    limits = devices.by_name("mi300x", "hip")
    for fields in ({"registers": 128}, {"paired": 1}):
        rules = [b.rule for b in kernel.broken_rules(GemmTile(64, 128, 128, **fields), Q4_K, limits)]
        assert "registers and paired are for NVIDIA" in rules


def test_even_shares_are_priced_below_a_short_round() -> None:
    """1088 tiles are 4.1 rounds of 264 programs: shared evenly they take no fifth."""
    kernel, limits = kernels.by_name("triton.gemm"), devices.by_name("h200", "cuda")
    problem = Problem("Q4_K", 17408, 5120, 512, "fp16", "fp16")
    whole = kernel.price(GemmTile(64, 128, 128), problem, limits)
    even = kernel.price(GemmTile(64, 128, 128, split_k=0, programs=264, rest=1), problem, limits)
    assert even.seconds < whole.seconds
