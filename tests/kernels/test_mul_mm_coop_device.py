"""`vulkan.mul_mm_coop` on a device that lists fp16 matrices: every place where weights are decoded is proved."""

from __future__ import annotations

import pytest

from warptile import kernels
from warptile.contracts import Problem, Runtime
from warptile.kernels.vulkan.mul_mm_coop.space import matrices
from warptile.kernels.vulkan.mul_mm_coop.tile import MulMmCoopTile
from warptile.proof import prove

KERNEL = kernels.by_name("mul_mm_coop")


@pytest.mark.parametrize("name", ["Q4_K", "Q8_0"])
@pytest.mark.parametrize(
    "tile",
    [
        "warps_n=2,warps_m=1,matrices_n=1,matrices_m=2,k_chunk=32,weights=block,buffers=2",
        "warps_n=1,warps_m=2,matrices_n=1,matrices_m=1,k_chunk=32,weights=warp,split_k=2,decode=fp32",
        "warps_n=2,warps_m=1,matrices_n=2,matrices_m=2,k_chunk=64,weights=registers,prefetch=2",
    ],
)
def test_proof(device: Runtime, name: str, tile: str) -> None:
    limits = device.limits()
    listed = matrices(limits, "fp16", "fp32")
    if not listed:
        pytest.skip(f"{limits.name} lists no fp16 matrix with fp32 sums")
    own = MulMmCoopTile.parse(f"operands=fp16,matrix={listed[0]},subgroup={limits.subgroup},{tile}")
    problem = Problem(name, 64, 256, 16)
    broken = KERNEL.broken_rules(own, problem, limits)
    if own.weights == "registers" and broken:
        pytest.skip(f"{broken[0].rule}: {broken[0].numbers}")
    verdict = prove(device, KERNEL, own, problem, "quick", 0)
    assert verdict.right, (verdict.failed, verdict.detail)


@pytest.mark.parametrize("name", ["Q4_K", "Q6_K", "Q8_0"])
@pytest.mark.parametrize(
    "tile",
    [
        "warps_n=2,warps_m=1,matrices_n=1,matrices_m=2,k_chunk=64,weights=warp,scales=broadcast,x_block=256,decode=fp16",
        "warps_n=2,warps_m=2,matrices_n=2,matrices_m=1,k_chunk=32,weights=block,scales=broadcast,x_block=32,decode=fp16,"
        "split_k=2",
        "warps_n=2,warps_m=1,matrices_n=1,matrices_m=1,k_chunk=256,weights=warp,activations=private,scales=raw,"
        "x_block=256,pad=0,decode=fp32",
    ],
)
def test_int8_proof(device: Runtime, name: str, tile: str) -> None:
    limits = device.limits()
    listed = matrices(limits, "s8", "s32")
    if not listed:
        pytest.skip(f"{limits.name} lists no int8 matrix")
    own = MulMmCoopTile.parse(f"operands=int8,matrix={listed[0]},subgroup={limits.subgroup},{tile}")
    verdict = prove(device, KERNEL, own, Problem(name, 40, 512, 19), "quick", 0)
    assert verdict.right, (verdict.failed, verdict.detail)
