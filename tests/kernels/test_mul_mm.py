"""`vulkan.mul_mm` on a software device, against float64 from the format's own decode, equal to the bit.

Weights and activations are small whole numbers: every product and every partial sum stays below 2**24, and every staged
value below 2**11, so fp32 sums of fp16 or fp32 operands are exact in any order.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.integer_weights import FACTORS, integer_blocks, reference

from warptile import formats, kernels, layouts
from warptile.contracts import Problem, Runtime
from warptile.kernels.vulkan.mul_mm.tile import MulMmTile
from warptile.places import Places
from warptile.runtimes import open_device

KERNEL = kernels.by_name("mul_mm")
FP16 = MulMmTile.parse("32,32,32,32,8,32,2,2,2,1,8,shared=fp16")
FP32 = MulMmTile.parse("32,32,32,64,8,32,2,2,2,1,8,shared=fp32")


def run_exactly(device: Runtime, tile: MulMmTile, problem: Problem, max_bytes: int | None = None) -> None:
    """Run once into a poisoned, guarded output and compare every element to the bit."""
    limits = device.limits()
    assert KERNEL.broken_rules(tile, problem, limits) == []
    n, k, m = problem.n, problem.k, problem.m
    blocks = integer_blocks(problem.format, n, k, seed=n + k)
    x = np.random.default_rng(m).integers(-3, 4, (m, k)).astype(np.float32)
    weights = layouts.upload(
        device, layouts.pack(formats.by_name(problem.format), blocks.reshape(-1), n, k, max_bytes=max_bytes)
    )
    assert max_bytes is None or len(weights.slices) > 1
    x_buffer = device.guarded_buffer(x.nbytes)
    device.write(x_buffer, x)
    y_buffer = device.guarded_buffer(4 * m * n)
    buffers = [x_buffer, y_buffer, *(piece.buffer for piece in weights.slices)]
    try:
        binary = device.compile(KERNEL.source(tile, problem, limits))
        launches = KERNEL.launch(binary, tile, problem, x_buffer, weights, y_buffer)
        device.execute(launches)
        assert device.executed_ids() == [binary.id] * len(launches)
        y = device.download(y_buffer, np.float32, (m, n))
        assert device.guards_intact(y_buffer)
        np.testing.assert_array_equal(y, reference(problem.format, blocks, n, k, x))
    finally:
        device.free(buffers)


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("tile", [FP16, FP32], ids=["fp16", "fp32"])
def test_every_format_on_ragged_sides(device: Runtime, name: str, tile: MulMmTile) -> None:
    # Neither side divides by the tile; for 32-weight blocks k = 96 leaves the FP32 tile (tile_k 64) half a step.
    k = max(96, formats.by_name(name).block_size)
    run_exactly(device, tile, Problem(name, 70, k, 37))


@pytest.mark.parametrize(("n", "m", "k"), [(1, 1, 32), (31, 33, 32), (32, 32, 64), (33, 31, 96), (65, 1, 160)])
def test_around_the_tile_s_boundaries(device: Runtime, n: int, m: int, k: int) -> None:
    run_exactly(device, FP16, Problem("Q4_1", n, k, m))
    run_exactly(device, FP32, Problem("Q4_1", n, k, m))


@pytest.mark.parametrize(
    "tile",
    [
        "128,64,64,32,8,32,2,4,2,1,8",  # llama.cpp's medium: four threads to a chunk
        "256,32,32,32,8,4,1,2,2,1,8",  # eight threads to a chunk
        "32,64,16,64,16,16,1,8,1,1,8",  # more chunks than threads
        "64,24,48,32,24,6,1,3,6,1,8,shared=fp32",  # no power of two
    ],
)
def test_every_way_to_share_the_staging(device: Runtime, tile: str) -> None:
    run_exactly(device, MulMmTile.parse(tile), Problem("Q4_0", 75, 96, 50))


def test_rows_of_later_slices_land_in_their_columns(device: Runtime) -> None:
    # Two slices of Q8_0 [80, 64]: rows take 68 bytes packed.
    run_exactly(device, FP16, Problem("Q8_0", 80, 64, 5), max_bytes=48 * 68)


@pytest.mark.parametrize(("bits", "subgroup"), [(128, 4), (512, 16)])
def test_stock_tiles_at_other_subgroup_sizes(software_device: str, tmp_path: Path, bits: int, subgroup: int) -> None:
    child = subprocess.run(
        [sys.executable, __file__, software_device, str(tmp_path)],
        env={**os.environ, "LP_NATIVE_VECTOR_WIDTH": str(bits), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.split() == [str(subgroup)]


def stock_tiles_are_right(text: str, folder: str) -> int:
    """Run the stock tiles of the device a child process sees; its subgroup size."""
    device = open_device(text, Places.under(folder).ready())
    limits = device.limits()
    for m in (17, 64):
        problem = Problem("Q4_1", 70, 96, m)
        tile = KERNEL.stock(problem, limits)
        assert isinstance(tile, MulMmTile)
        assert tile.subgroup == limits.subgroup
        run_exactly(device, tile, problem)
    device.close()
    return limits.subgroup


if __name__ == "__main__":
    print(stock_tiles_are_right(*sys.argv[1:]))
