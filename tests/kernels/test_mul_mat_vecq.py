"""`vulkan.mul_mat_vecq` on a software device: equal to the bit where activations quantize exactly, proved elsewhere."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.guarded_run import guarded_run
from support.integer_weights import FACTORS, integer_blocks, reference

from warptile import devices, formats, kernels
from warptile.contracts import Problem, Runtime
from warptile.kernels.vulkan.mul_mat_vecq import MulMatVecqTile
from warptile.places import Places
from warptile.proof import ReferenceCache, prove
from warptile.runtimes import open_device
from warptile.search import rank

KERNEL = kernels.by_name("mul_mat_vecq")
STAGED = "lanes_n=4,split_k=6,thread_n=4,columns=2,load_n=4,chunks=2,prefetch=0,staging=shared,sums=shuffle"
APART = "lanes_n=8,split_k=3,thread_n=2,columns=1,load_n=2,chunks=1,prefetch=1,staging=scratch,sums=shared"
ROWS = "lanes_n=1,split_k=8,thread_n=1,columns=1,load_n=1,chunks=1,prefetch=1,staging=shared,sums=shuffle,dot=plain"
TILES = {"staged": STAGED, "apart": APART, "rows": ROWS}
H200 = devices.by_name("h200", "vulkan")


def activations(m: int, k: int) -> NDArray[np.float32]:
    """Whole numbers whose blocks of 32 hold 127 or -127 once: their scale is 1 and every code is the value."""
    rng = np.random.default_rng(m)
    x = rng.integers(-3, 4, (m, k // 32, 32)).astype(np.float32)
    np.put_along_axis(x, rng.integers(0, 32, (m, k // 32, 1)), rng.choice([-127.0, 127.0], (m, k // 32, 1)), axis=2)
    return x.reshape(m, k)


def run_exactly(device: Runtime, tile: str, problem: Problem, max_bytes: int | None = None) -> None:
    own = MulMatVecqTile.parse(tile)
    assert KERNEL.broken_rules(own, problem, device.limits()) == []
    blocks = integer_blocks(problem.format, problem.n, problem.k, seed=problem.n + problem.k)
    x = activations(problem.m, problem.k)
    y = guarded_run(device, KERNEL, own, problem, blocks, x, max_bytes)
    np.testing.assert_array_equal(y, reference(problem.format, blocks, problem.n, problem.k, x))


@pytest.mark.parametrize("name", FACTORS)
def test_every_format_on_ragged_sides(device: Runtime, name: str) -> None:
    # 100 rows leave the last workgroup part empty, three rows of x the last pass; the last step lacks chunks.
    tile = STAGED if list(FACTORS).index(name) % 2 else APART
    k = 416 if formats.by_name(name).block_size == 32 else 512
    run_exactly(device, tile, Problem(name, 100, k, 3))


@pytest.mark.parametrize(("tile", "n", "k", "m"), [("rows", 7, 256, 2), ("staged", 16, 384, 1), ("apart", 66, 128, 1)])
def test_around_the_tile_s_boundaries(device: Runtime, tile: str, n: int, k: int, m: int) -> None:
    run_exactly(device, TILES[tile], Problem("Q4_1", n, k, m))


def test_rows_of_later_slices_land_in_their_columns(device: Runtime) -> None:
    # Two slices of Q8_0 [80, 384]: rows take 408 bytes packed. One pre-pass serves both.
    run_exactly(device, APART, Problem("Q8_0", 80, 384, 2), max_bytes=48 * 408)


# Scales of two levels, two scales a chunk, base-3 codes, a codebook.
KINDS = ("Q4_K", "Q6_K", "PTQ1_0", "IQ4_XS")


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_format_is_proved(device: Runtime, name: str) -> None:
    tile = MulMatVecqTile.parse(APART if KINDS.index(name) % 2 else STAGED)
    found = prove(device, KERNEL, tile, Problem(name, 64, 512, 1), cache=ReferenceCache())
    assert found.right, f"{found.failed}: {found.detail}"
    assert 0 < found.worst_ratio < 1


def test_activations_that_are_not_finite_stay_so(device: Runtime) -> None:
    """A block with an infinity or a NaN gives NaN in every row; blocks of zeros give zero."""
    problem = Problem("Q4_1", 8, 384, 2)
    blocks = integer_blocks("Q4_1", 8, 384, seed=1)
    x = np.zeros((2, 384), np.float32)
    x[0, 5], x[1, 7] = np.inf, np.nan
    for tile in (STAGED, APART, STAGED.replace("sums=shuffle", "sums=shared")):
        assert np.isnan(guarded_run(device, KERNEL, MulMatVecqTile.parse(tile), problem, blocks, x)).all()
    assert not guarded_run(device, KERNEL, MulMatVecqTile.parse(STAGED), problem, blocks, 0 * np.nan_to_num(x)).any()


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"thread_n": 3}, "thread_n % load_n = 0"),
        ({"lanes_n": 3, "split_k": 8}, "lanes_n is a power of two"),
        ({"columns": 32}, "accumulators"),
        ({"split_k": 5}, "whole subgroups a workgroup"),
        ({"split_k": 16, "chunks": 2}, "every part of k has a chunk"),
        ({"staging": "registers"}, "staging is shared or scratch"),
    ],
)
def test_rules(device: Runtime, change: dict[str, int | str], rule: str) -> None:
    tile = dataclasses.replace(MulMatVecqTile.parse(STAGED), **change)  # type: ignore[arg-type]
    broken = KERNEL.broken_rules(tile, Problem("Q4_K", 64, 512, 2), device.limits())
    assert any(rule in b.rule for b in broken), [b.text() for b in broken]


def test_a_software_device_is_offered_none(device: Runtime) -> None:
    assert not list(KERNEL.space(Problem("Q4_K", 64, 512, 1), device.limits()))


def test_a_card_s_first_tiles_fill_it_and_leave_no_step_short() -> None:
    problem = Problem("Q4_K", 4096, 14336, 1)
    best = rank(problem, H200, [KERNEL])[0]
    assert isinstance(best.tile, MulMatVecqTile)
    assert best.price.workgroups <= H200.units < 2 * best.price.workgroups
    assert problem.k % (32 * best.tile.split_k * best.tile.chunks) == 0


@pytest.mark.parametrize(("bits", "subgroup"), [(512, 16)])
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
    """Run tiles whose workgroup is whole subgroups, in a child process; the device's subgroup size."""
    device = open_device(text, Places.under(folder).ready())
    for tile in (
        STAGED.replace("split_k=6", "split_k=4"),
        STAGED.replace("lanes_n=4,split_k=6", "lanes_n=16,split_k=3"),
    ):
        run_exactly(device, tile, Problem("Q4_1", 100, 288, 3))
    subgroup = device.limits().subgroup
    device.close()
    return subgroup


if __name__ == "__main__":
    print(tiles_are_right(*sys.argv[1:]))
