"""`triton.gemm_id` in Triton's interpreter: the proof, and what `matmul_id` promises a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warptile import devices, formats, kernels
from warptile.contracts import Problem, Runtime, UnusableInput
from warptile.kernels.triton.common import arranged
from warptile.kernels.triton.gemm_id.kernel import most_tiles
from warptile.layouts.experts import expert_stride
from warptile.proof.proving import prove
from warptile.proof.weights import random_blocks
from warptile.weights import QuantTensor

torch = pytest.importorskip("torch")

E, N, K, TOP_K = 5, 24, 256, 2
SORTED = "triton.gemm_id:tile_n=16,tile_m=8,tile_k=128,span=2,warps=1"
ALONE = "triton.gemm_id:tile_n=16,tile_m=8,tile_k=128,order=slots,steps=2,warps=4"


def experts_of(name: str, k: int = K) -> QuantTensor:
    found = formats.by_name(name)
    blocks = random_blocks(found, E * N * k // found.block_size, np.random.default_rng(2))
    return QuantTensor.from_blocks(found, blocks, (E, N, k))


def reference(w: QuantTensor, x: Any, ids: Any, weights: Any = None) -> Any:
    """In double, expert by expert; ids that name no expert give 0."""
    dense = torch.from_numpy(w.dequantize()).double().reshape(E, N, -1)
    rows = x.double() if x.dim() == 3 else x.double()[:, None].expand(*ids.shape, -1)
    y = torch.einsum("tjk,tjnk->tjn", rows, dense[ids.clamp(0, E - 1).long()])
    y = y * ((ids >= 0) & (ids < E))[..., None]
    return y if weights is None else (y * weights.double()[..., None]).sum(1)


def nmse(y: Any, want: Any) -> float:
    return float((y.double() - want).square().sum() / want.square().sum())


@pytest.fixture(scope="module")
def packed(interpreter: Runtime) -> Any:
    from warptile.torch_experts import TorchExperts

    return TorchExperts.pack(experts_of("Q4_K"), E, "cpu")


@pytest.mark.parametrize(("tile", "summed"), [(SORTED, False), (ALONE, True)], ids=["sorted", "alone and summed"])
def test_proof(interpreter: Runtime, tile: str, summed: bool) -> None:
    """Groups of every size at the tile's edges, empty ones, ids that name no expert, one expert with every row."""
    kernel, parsed = kernels.parse_tile(tile)
    problem = Problem("Q4_K", N, K, 3, "fp16", "fp16", E, TOP_K, x_slots=summed, summed=summed)
    verdict = prove(interpreter, kernel, parsed, problem)
    assert verdict.right, f"{verdict.failed}: {verdict.detail}"
    assert 0 < verdict.worst_ratio < 1


@pytest.mark.parametrize("name", ["MXFP4", "TQ1_0"])
def test_formats_by_their_layouts(interpreter: Runtime, name: str) -> None:
    """Two that decode by themselves: E2M1 as bits of fp16, base 3. 3e-6: fp16 weights and activations."""
    from warptile.torch_experts import TorchExperts, matmul_id

    w = experts_of(name)
    step = arranged(Problem(name, N, K, 1)).step
    x = torch.randn((2, K), generator=torch.Generator().manual_seed(0)).half()
    ids = torch.tensor([[4, 0], [1, 4]], dtype=torch.int32)
    y = matmul_id(x, TorchExperts.pack(w, E, "cpu"), ids, tile=SORTED.replace("tile_k=128", f"tile_k={step}"))
    assert nmse(y, reference(w, x, ids)) < 3e-6


def test_a_token_does_not_depend_on_the_others(packed: Any) -> None:
    from warptile.torch_experts import matmul_id

    x = torch.randn((6, K), generator=torch.Generator().manual_seed(1)).half()
    ids = torch.tensor([[0, 1], [1, 1], [4, 2], [1, 0], [2, 4], [1, 3]], dtype=torch.int32)
    together = matmul_id(x, packed, ids, batch_invariant=True)
    assert torch.equal(matmul_id(x[2:3], packed, ids[2:3], batch_invariant=True), together[2:3])
    with pytest.raises(UnusableInput, match="batch_invariant"):
        matmul_id(x, packed, ids, batch_invariant=True, tile=SORTED)


@pytest.mark.parametrize("tile", [SORTED, ALONE])
def test_ids_on_the_device_that_name_no_expert(packed: Any, tile: str) -> None:
    """Their rows are 0 and add nothing, also with a weight that is not a number; wide ids do not wrap to an expert."""
    from warptile.torch_experts import matmul_id, refuse_bad_ids

    x = torch.randn((2, K), generator=torch.Generator().manual_seed(3)).half()
    ids = torch.tensor([[0, -1], [2**32 + 1, E]], dtype=torch.int64)
    y = matmul_id(x, packed, ids, tile=tile)
    assert (y[0, 1] == 0).all()
    assert (y[1] == 0).all()
    weights = torch.tensor([[2.0, float("nan")], [float("inf"), 1.0]])
    total = matmul_id(x, packed, ids, weights, tile=tile)
    assert nmse(total[0], 2 * y[0, 0].double()) < 1e-6
    assert (total[1] == 0).all()
    with pytest.raises(UnusableInput, match=r"ids\[0, 1\] is -1, there are experts 0 to 4; 3 of 4 ids"):
        refuse_bad_ids(ids, E)
    with pytest.raises(UnusableInput, match="ids"):
        matmul_id(x, packed, ids, tile=tile, check=True)


def test_the_op_has_a_fake_and_compiles(packed: Any) -> None:
    from warptile.torch_experts import matmul_id

    x = torch.randn((2, TOP_K, K), generator=torch.Generator().manual_seed(4)).half()
    ids = torch.tensor([[0, 3], [3, 1]], dtype=torch.int32)
    weights = torch.rand(2, TOP_K, generator=torch.Generator().manual_seed(5))
    arguments = (x, packed.words, packed.format, E, N, K, ids, weights, ALONE, False, "")
    torch.library.opcheck(
        torch.ops.warptile.matmul_id.default, arguments, test_utils=("test_schema", "test_faketensor")
    )
    compiled = torch.compile(
        lambda a: matmul_id(a, packed, ids, weights, tile=ALONE) * 2, fullgraph=True, backend="aot_eager"
    )
    assert torch.equal(compiled(x), matmul_id(x, packed, ids, weights, tile=ALONE) * 2)
    assert matmul_id(x[:0], packed, ids[:0], weights[:0]).shape == (0, N)


@pytest.mark.parametrize(
    ("x", "ids", "weights", "message"),
    [
        ((2, K + 1), (2, 2), None, "x is"),
        ((2, 3, K), (2, 2), None, "x is"),
        ((2, K), (4,), None, "ids are"),
        ((2, K), (2, 2), (2, 1), "weights are"),
    ],
)
def test_shapes_that_do_not_fit(packed: Any, x: Any, ids: Any, weights: Any, message: str) -> None:
    from warptile.torch_experts import matmul_id

    given = None if weights is None else torch.zeros(weights)
    with pytest.raises(UnusableInput, match=message):
        matmul_id(torch.zeros(x).half(), packed, torch.zeros(ids, dtype=torch.int32), given)


@pytest.mark.parametrize(("slots", "experts", "tile_m"), [(1, 256, 8), (300, 7, 16), (4096, 128, 32), (5, 1, 64)])
def test_the_grid_holds_the_tiles_of_any_ids(slots: int, experts: int, tile_m: int) -> None:
    """Most tiles: a row each to as many experts as there are, ids that name none among them, the rest to one."""
    groups = min(slots, experts + 1)
    sizes = np.array([slots - (groups - 1)] + [1] * (groups - 1))
    assert (-(-sizes // tile_m)).sum() <= most_tiles(slots, experts, tile_m)


def test_prices_follow_the_groups() -> None:
    """For one token rows alone are cheapest, and a skewed routing, which reads fewer experts, is cheaper than a uniform
    one; for many tokens sorted rows are."""
    limits = devices.compile_only("h200")
    kernel = kernels.by_name("triton.gemm_id")
    few, many = (Problem("Q4_K", 768, 2048, m, "fp16", "fp16", 128, 8) for m in (1, 4096))
    alone, sorted_rows = (
        kernels.parse_tile(t)[1]
        for t in (
            ALONE.replace("steps=2", "steps=4"),
            SORTED.replace("warps=1", "warps=4").replace("tile_n=16", "tile_n=64").replace("tile_m=8", "tile_m=64"),
        )
    )
    assert kernel.price(alone, few, limits).seconds < kernel.price(sorted_rows, few, limits).seconds
    assert kernel.price(sorted_rows, many, limits).seconds < kernel.price(alone, many, limits).seconds
    at = Problem("Q4_K", 768, 2048, 64, "fp16", "fp16", 128, 8, routing="uniform")
    skewed = Problem("Q4_K", 768, 2048, 64, "fp16", "fp16", 128, 8, routing="zipf:2")
    assert kernel.price(sorted_rows, skewed, limits).seconds < kernel.price(sorted_rows, at, limits).seconds
    stock = kernel.stock(many, limits)
    assert stock is not None
    assert not kernel.broken_rules(stock, many, limits)


def test_experts_lie_on_whole_lines() -> None:
    for name in ("Q4_K", "TQ1_0", "MXFP4"):
        found = formats.by_name(name)
        assert expert_stride(found, 17, 256, "quads") % 16 == 0
        assert expert_stride(found, 17, 256, "rows") % 16 == 0
