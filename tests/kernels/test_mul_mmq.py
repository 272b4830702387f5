"""`vulkan.mul_mmq` on a software device: equal to the bit where activations quantize exactly, proved elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from support.integer_weights import FACTORS, integer_blocks, reference
from support.guarded_run import guarded_run

from warptile import formats, kernels
from warptile.contracts import Kernel, Problem, Runtime
from warptile.kernels.vulkan.mul_mmq.tile import MulMmqTile
from warptile.proof import ReferenceCache, prove

KERNEL = kernels.by_name("mul_mmq")
TILE = "32,32,16,32,32,4,2,2,2,1,8"
TILES = {
    "packed": f"{TILE},2",
    "int8": f"{TILE},4,staged=int8,scales=fp32",
    "plain": f"{TILE},1,dot=plain",
}


def activations(m: int, k: int) -> NDArray[np.float32]:
    """Whole numbers whose blocks of 32 hold 127 or -127 once: their scale is 1 and every code is the value."""
    rng = np.random.default_rng(m)
    x = rng.integers(-3, 4, (m, k // 32, 32)).astype(np.float32)
    np.put_along_axis(x, rng.integers(0, 32, (m, k // 32, 1)), rng.choice([-127.0, 127.0], (m, k // 32, 1)), axis=2)
    return x.reshape(m, k)


def run_exactly(device: Runtime, tile: MulMmqTile, problem: Problem, max_bytes: int | None = None) -> None:
    blocks = integer_blocks(problem.format, problem.n, problem.k, seed=problem.n + problem.k)
    x = activations(problem.m, problem.k)
    y = guarded_run(device, KERNEL, tile, problem, blocks, x, max_bytes)
    np.testing.assert_array_equal(y, reference(problem.format, blocks, problem.n, problem.k, x))


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("tile", TILES)
def test_every_format_on_ragged_sides(device: Runtime, name: str, tile: str) -> None:
    k = max(96, formats.by_name(name).block_size)
    run_exactly(device, MulMmqTile.parse(TILES[tile]), Problem(name, 70, k, 37))
