"""`vulkan.mul_mm_direct` and `vulkan.mul_mat_vec` on a software device, against float64 from the format's own decode.

Whole-number weights and activations make every partial sum exact in fp32 in any order (below 2**24), so those outputs
must be equal to the bit. Real-valued ones are held to (additions a sum takes part in + parts + roundings of the
products) * 2**-24 * sum |x| |w|, the standard bound of a dot product in any order.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.guarded_run import guarded_run
from support.integer_weights import FACTORS, integer_blocks, reference

from warptile import formats, kernels
from warptile.contracts import Problem, Runtime
from warptile.places import Places
from warptile.runtimes import open_device

WIDE = "mul_mm_direct:lanes=8,thread_n=4,thread_m=4,load_n=4,x_access=shuffle64,first=n"
PAIRS = "mul_mm_direct:lanes=16,thread_n=2,thread_m=3,load_n=2,x_access=shuffle,first=m"
PLAIN = "mul_mm_direct:lanes=8,thread_n=1,thread_m=2,load_n=1,x_access=direct,first=m"
VEC_SPLIT = "mul_mat_vec:lanes_n=8,split_k=3,thread_n=4,columns=2,load_n=4,x_access=shuffle64"
VEC_ALONE = "mul_mat_vec:lanes_n=8,split_k=1,thread_n=2,columns=1,load_n=2,x_access=shuffle"
VEC_ROWS = "mul_mat_vec:lanes_n=1,split_k=8,thread_n=2,columns=2,load_n=1,x_access=direct"
TILES = [WIDE, PAIRS, PLAIN, VEC_SPLIT, VEC_ALONE, VEC_ROWS]


def run_exactly(device: Runtime, text: str, problem: Problem, max_bytes: int | None = None) -> None:
    kernel, tile = kernels.parse_tile(f"vulkan.{text}")
    blocks = integer_blocks(problem.format, problem.n, problem.k, seed=problem.n + problem.k)
    x = np.random.default_rng(problem.m).integers(-3, 4, (problem.m, problem.k)).astype(np.float32)
    y = guarded_run(device, kernel, tile, problem, blocks, x, max_bytes)
    np.testing.assert_array_equal(y, reference(problem.format, blocks, problem.n, problem.k, x))


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("text", TILES)
def test_every_format_on_ragged_sides(device: Runtime, name: str, text: str) -> None:
    # 100 rows leave the last workgroup part empty, 17 rows of x the last register tile; three chunks split unevenly.
    run_exactly(device, text, Problem(name, 100, max(96, formats.by_name(name).block_size), 17))


@pytest.mark.parametrize("text", TILES)
@pytest.mark.parametrize(("n", "m"), [(4, 1), (28, 3), (32, 4), (36, 5), (68, 2)])
def test_around_the_tile_s_boundaries(device: Runtime, text: str, n: int, m: int) -> None:
    run_exactly(device, text, Problem("Q4_1", n, 32, m))
    run_exactly(device, text, Problem("Q4_1", n, 160, m))


@pytest.mark.parametrize("n", [1, 7, 9])
def test_any_number_of_rows_where_rows_are_loaded_alone(device: Runtime, n: int) -> None:
    run_exactly(device, PLAIN, Problem("Q8_0", n, 64, 3))


@pytest.mark.parametrize("text", [WIDE, VEC_SPLIT])
@pytest.mark.parametrize("name", FACTORS)
def test_real_values_over_several_blocks(device: Runtime, name: str, text: str) -> None:
    found = formats.by_name(name)
    problem = Problem(name, 36, 3 * max(found.block_size, 64), 3)
    rng = np.random.default_rng(7)
    blocks = integer_blocks(name, problem.n, problem.k, seed=11)
    scales = rng.normal(0, 0.02, (len(blocks), len(FACTORS[name]))).astype(np.float16)
    blocks.view(np.uint16)[:, FACTORS[name]] = scales.view(np.uint16)
    x = rng.normal(0, 1, (problem.m, problem.k)).astype(np.float32)
    kernel, tile = kernels.parse_tile(f"vulkan.{text}")
    y = guarded_run(device, kernel, tile, problem, blocks, x)
    size = np.abs(x).astype(np.float64) @ np.abs(found.decode(blocks).reshape(problem.n, problem.k)).T.astype(
        np.float64
    )
    sums = kernel.arithmetic(tile, problem)
    bound = (sums.depth + sums.parts + 2) * 2.0**-24 * size
    assert np.all(np.abs(y - reference(name, blocks, problem.n, problem.k, x)) <= bound)


@pytest.mark.parametrize("text", [WIDE, VEC_SPLIT])
def test_rows_of_later_slices_land_in_their_columns(device: Runtime, text: str) -> None:
    # Q8_0 [80, 64] takes 68 bytes a row packed: slices of 48 and 32 rows.
    run_exactly(device, text, Problem("Q8_0", 80, 64, 5), max_bytes=48 * 68)


def test_more_rows_than_one_dimension_takes_workgroups(device: Runtime) -> None:
    # A vocabulary of 262144 rows, one workgroup a row or two, passes the 65535 workgroups every device allows.
    one_row = "mul_mat_vec:lanes_n=1,split_k=1,thread_n=1,columns=1,load_n=1,x_access=direct"
    kernel, tile = kernels.parse_tile(f"vulkan.{one_row}")
    assert kernel.price(tile, Problem("Q8_0", 131_073, 32, 1), device.limits()).workgroups >= 131_073
    run_exactly(device, one_row, Problem("Q8_0", 131_073, 32, 1))
    stock = kernel.stock(Problem("Q8_0", 262_144, 640, 1), device.limits())
    assert stock is not None
    assert kernel.broken_rules(stock, Problem("Q8_0", 262_144, 640, 1), device.limits()) == []


def test_a_sum_over_parts_is_the_same_every_time(device: Runtime) -> None:
    problem = Problem("Q4_0", 64, 512, 2)
    kernel, tile = kernels.parse_tile(f"vulkan.{VEC_SPLIT}")
    rng = np.random.default_rng(3)
    blocks = integer_blocks("Q4_0", problem.n, problem.k, seed=5)
    x = rng.normal(0, 1, (problem.m, problem.k)).astype(np.float32)
    first = guarded_run(device, kernel, tile, problem, blocks, x)
    for _ in range(3):
        np.testing.assert_array_equal(guarded_run(device, kernel, tile, problem, blocks, x), first)


@pytest.mark.parametrize(("bits", "subgroup"), [(128, 4), (512, 16)])
def test_other_subgroup_sizes(software_device: str, tmp_path: Path, bits: int, subgroup: int) -> None:
    child = subprocess.run(
        [sys.executable, __file__, software_device, str(tmp_path)],
        env={**os.environ, "LP_NATIVE_VECTOR_WIDTH": str(bits), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.split() == [str(subgroup)]


def tiles_are_right(text: str, folder: str) -> int:
    """Run what the device's subgroup allows, in a child process; its subgroup size."""
    device = open_device(text, Places.under(folder).ready())
    limits = device.limits()
    problem = Problem("Q4_1", 100, 96, 17)
    ran = 0
    for line in [PLAIN, VEC_ROWS, *(tile.replace("=8,", f"={limits.subgroup},") for tile in (WIDE, VEC_SPLIT))]:
        kernel, tile = kernels.parse_tile(f"vulkan.{line}")
        if not kernel.broken_rules(tile, problem, limits):
            run_exactly(device, line, problem)
            ran += 1
    assert ran == (2 if limits.subgroup < 8 else 4), f"{ran} tiles ran"
    device.close()
    return limits.subgroup


if __name__ == "__main__":
    print(tiles_are_right(*sys.argv[1:]))
