"""`vulkan.mul_mmq` on a software device: equal to the bit where activations quantize exactly, proved elsewhere."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray
from support.guarded_run import guarded_run
from support.integer_weights import FACTORS, integer_blocks, reference

from warptile import formats, kernels
from warptile.contracts import Kernel, Limits, Problem, Runtime, Source, Tile
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


@pytest.mark.parametrize(("n", "m", "k"), [(1, 1, 32), (31, 17, 32), (32, 16, 64), (33, 15, 96), (65, 1, 160)])
def test_around_the_tile_s_boundaries(device: Runtime, n: int, m: int, k: int) -> None:
    run_exactly(device, MulMmqTile.parse(TILES["packed"]), Problem("Q4_1", n, k, m))


@pytest.mark.parametrize(
    "tile",
    [
        "128,64,64,32,8,32,2,2,2,1,8",  # llama.cpp's medium, with its BK_STEP of 4
        "256,32,32,32,8,4,1,2,2,1,8,1",  # fewer chunks than threads
        "32,64,16,32,16,16,1,8,1,1,8,3",  # more chunks than threads, a K-step of 96
        "64,24,48,32,24,6,1,3,6,1,8,2,staged=int8",  # no power of two
    ],
)
def test_every_way_to_share_the_staging(device: Runtime, tile: str) -> None:
    run_exactly(device, MulMmqTile.parse(tile), Problem("Q5_0", 75, 96, 50))


def test_rows_of_later_slices_land_in_their_columns(device: Runtime) -> None:
    # Two slices of Q8_0 [80, 64]: rows take 68 bytes packed. One pre-pass serves both.
    run_exactly(device, MulMmqTile.parse(TILES["packed"]), Problem("Q8_0", 80, 64, 5), max_bytes=48 * 68)


@pytest.fixture(scope="module")
def cache() -> ReferenceCache:
    return ReferenceCache()


ALL = sorted(formats.all_formats())


@pytest.mark.parametrize("name", ALL)
def test_every_format_is_proved(device: Runtime, cache: ReferenceCache, name: str) -> None:
    """Random activations within the derived bound, whole-number ones to the bit, on ragged shapes."""
    tile = f"{TILE},1,staged=int8" if ALL.index(name) % 2 else f"{TILE},2"
    found = prove(device, KERNEL, MulMmqTile.parse(tile), Problem(name, 96, 512, 12), cache=cache)
    assert found.right, f"{found.failed}: {found.detail}"
    assert 0 < found.worst_ratio < 1


@pytest.mark.parametrize("loader", ["uniform", "divergent"])
@pytest.mark.parametrize(("name", "bk_step"), [("PTQ1_0", 4), ("TQ1_0", 8)])
def test_block_loaders_of_base_3_formats(
    device: Runtime, cache: ReferenceCache, name: str, bk_step: int, loader: str
) -> None:
    tile = MulMmqTile.parse(f"{TILE},{bk_step},staged=int8,loader={loader}")
    found = prove(device, KERNEL, tile, Problem(name, 70, 768, 12), cache=cache)
    assert found.right, f"{found.failed}: {found.detail}"


class Mutant:
    """The kernel, or its pre-pass, with one change of text."""

    def __init__(self, before: str, after: str, helper: bool = False) -> None:
        self._change = (before, after)
        self._helper = helper

    def __getattr__(self, name: str) -> object:
        return getattr(KERNEL, name)

    def _changed(self, source: Source) -> Source:
        assert self._change[0] in source.text, "the planted fault no longer fits the shader"
        return dataclasses.replace(source, text=source.text.replace(*self._change))

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        source = KERNEL.source(tile, problem, limits)
        if not self._helper:
            return self._changed(source)
        return dataclasses.replace(source, helpers=tuple(self._changed(h) for h in source.helpers))


@pytest.mark.parametrize(
    ("check", "mutant"),
    [
        ("guards", Mutant("if (y_column < P.rows) Y", "Y")),
        ("written", Mutant("if (y_row < P.m)", "if (y_row + 1u < P.m)")),
        ("finite", Mutant("&& from < row_words", "")),  # activations past k are poison
        ("nmse", Mutant("chunk_sum -= AT(minimum[r], g) * x_sum[g]", "chunk_sum -= AT(minimum[r], g)")),
        ("nmse", Mutant("first_chunk < chunks;", "first_chunk + BK_STEP < chunks;")),
        ("launch", Mutant("executed[P.slot] = BUILD_ID", "executed[P.slot] = BUILD_ID ^ 1u", helper=True)),
        ("exact", Mutant("roundEven(", "trunc(", helper=True)),
        ("finite", Mutant("block >= P.blocks", "block + 1u >= P.blocks", helper=True)),  # the last stays poisoned
        ("nmse", Mutant("x[i] * inverse", "x[i].yxzw * inverse", helper=True)),
    ],
)
def test_a_wrong_shader_is_caught(device: Runtime, cache: ReferenceCache, check: str, mutant: Mutant) -> None:
    wrong: Kernel = mutant  # type: ignore[assignment]
    found = prove(device, wrong, MulMmqTile.parse(TILES["packed"]), Problem("Q4_1", 96, 512, 24), cache=cache)
    assert (found.right, found.failed) == (False, check), found.detail


def test_activations_that_are_not_finite_show(device: Runtime) -> None:
    """A quantizer that clamped them would hide them."""
    problem = Problem("Q4_0", 32, 64, 2)
    x = activations(2, 64)
    x[1, 40] = np.inf
    y = guarded_run(device, KERNEL, MulMmqTile.parse(TILES["packed"]), problem, integer_blocks("Q4_0", 32, 64, 0), x)
    assert np.isfinite(y[0]).all()
    assert np.isnan(y[1]).all()
