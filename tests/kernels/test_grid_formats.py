"""Formats whose files index grids, and NVFP4, in Vulkan kernels: proved like any other, on a software device."""

from __future__ import annotations

import pytest

from warptile import kernels
from warptile.contracts import Problem, Runtime
from warptile.proof.proving import prove
from warptile.search import rank


@pytest.mark.parametrize(
    ("kernel", "name", "m"),
    [
        ("mul_mat_vec", "NVFP4", 1),
        ("mul_mat_vec", "IQ2_S", 1),
        ("mul_mm_direct", "IQ3_XXS", 16),
        ("mul_mmq", "IQ1_M", 16),
    ],
)
def test_the_best_priced_tile_is_right(device: Runtime, kernel: str, name: str, m: int) -> None:
    problem, own = Problem(name, 48, 256, m), kernels.by_name(kernel)
    tile = rank(problem, device.limits(), [own])[0].tile
    verdict = prove(device, own, tile, problem)
    assert verdict.right, verdict.detail
    assert 0 < verdict.worst_ratio < 1
