"""Grouped kernels on the software device: the proof, every format, and faults that the proof must see."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from warptile import formats, kernels
from warptile.contracts import (
    GroupedKernel,
    Kernel,
    Limits,
    Problem,
    Runtime,
    Source,
    Tile,
    UnusableInput,
    launches_of,
)
from warptile.kernels.vulkan.experts import most_tiles
from warptile.layouts import upload
from warptile.proof.proving import prove
from warptile.proof.references import ReferenceCache
from warptile.proof.weights import random_blocks
from warptile.race.jobs import BenchWeights, bench_for, race_job, release_job
from warptile.routing import Route
from warptile.search import rank
from warptile.serve_experts import GroupedCall
from warptile.weights import QuantTensor

VEC = "vulkan.mul_mat_vec_id:8,2,2,1,2,shuffle"
DIRECT = "vulkan.mul_mm_direct_id:8,2,4,2,shuffle64,m"
MM = "vulkan.mul_mm_id:32,32,16,32,16,8,2,2,2,1,8,shared=fp32"
UP = Problem("Q4_K", 44, 512, 5, experts=6, top_k=2)
DOWN = dataclasses.replace(UP, x_slots=True, summed=True, routing="zipf:1")


@pytest.fixture(scope="module")
def cache() -> ReferenceCache:
    return ReferenceCache()


@pytest.mark.parametrize("problem", [UP, DOWN], ids=["up", "down"])
@pytest.mark.parametrize("text", [VEC, DIRECT, MM])
def test_kernels_are_right(device: Runtime, cache: ReferenceCache, text: str, problem: Problem) -> None:
    """Groups at the tile's edges, empty ones, one with every row, ids that name no expert, experts in two buffers."""
    kernel, tile = kernels.parse_tile(text)
    verdict = prove(device, kernel, tile, problem, cache=cache)
    assert verdict.right, f"{verdict.failed}: {verdict.detail}"
    assert 0 < verdict.worst_ratio < 1
    assert len(verdict.shapes) >= 4


@pytest.mark.parametrize("name", list(formats.all_formats()))
def test_every_format_of_the_dense_kernels(device: Runtime, name: str) -> None:
    """Against sums in double: fp32 sums of 512 terms are off by 512 * 2^-24 of their magnitudes at most."""
    found = formats.by_name(name)
    experts, n, k = 3, 9, max(256, found.block_size)
    blocks = random_blocks(found, experts * n * k // found.block_size, np.random.default_rng(1))
    w = QuantTensor.from_blocks(found, blocks, (experts, n, k))
    rng = np.random.default_rng(2)
    x, ids = rng.standard_normal((2, k), np.float32), np.array([[2, 0], [2, 2]])
    call = GroupedCall.checked(x, w, experts, ids, None, "")
    kernel, tile = kernels.parse_tile("vulkan.mul_mat_vec_id:8,1,1,1,1,direct")
    binary = device.compile(kernel.source(tile, call.problem, device.limits()))
    limits = device.limits()
    held = upload(device, call.packed(w, limits.max_buffer_bytes, limits.arrangement))
    y = call.run(device, Route(kernel, tile, "forced"), binary, held)
    device.free([s.buffer for s in held.slices])
    dense = w.dequantize().astype(np.float64).reshape(experts, n, k)
    want = np.einsum("tk,tjnk->tjn", x.astype(np.float64), dense[ids])
    size = np.einsum("tk,tjnk->tjn", np.abs(x).astype(np.float64), np.abs(dense[ids]))
    assert (np.abs(y - want) <= 2 * k * 2.0**-24 * size + 1e-6).all()


class Mutant:
    """A grouped kernel with one change in its product's shader, or in a helper's."""

    def __init__(self, kernel: Kernel, before: str, after: str) -> None:
        self._kernel, self._change = kernel, (before, after)
        self.launch_grouped = kernel.launch_grouped  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> object:
        return getattr(self._kernel, name)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        whole = self._kernel.source(tile, problem, limits)
        parts = [whole, *whole.helpers]
        assert any(self._change[0] in p.text for p in parts), "the planted fault no longer fits the shader"
        product, *helpers = (dataclasses.replace(p, text=p.text.replace(*self._change)) for p in parts)
        return dataclasses.replace(product, helpers=tuple(helpers))


@pytest.mark.parametrize(
    ("check", "problem", "before", "after"),
    [
        ("written", UP, "count[b] + P.tile_m - 1u", "count[b]"),
        ("nmse", UP, "min(count[b] - i * P.tile_m, P.tile_m)", "P.tile_m"),
        ("nmse", UP, "(Y_ROW(token) / P.x_share)", "min(Y_ROW(token), 1u)"),
        ("written", UP, "if (!tile_named) return P.expert0 == 0u;", "if (!tile_named) return false;"),
        ("nmse", DOWN, "sum += Weights[s] * Slots", "sum += Slots"),
        ("launch", DOWN, "executed[P.slot] = BUILD_ID", "executed[P.slot] = BUILD_ID ^ 1u"),
    ],
)
def test_a_wrong_shader_is_caught(
    device: Runtime, cache: ReferenceCache, check: str, problem: Problem, before: str, after: str
) -> None:
    """A tile short, rows past the group, another row of x, ids that name none left alone, sums without weights, stale
    ids."""
    kernel, tile = kernels.parse_tile(DIRECT)
    mutant: Kernel = Mutant(kernel, before, after)  # type: ignore[assignment]
    verdict = prove(device, mutant, tile, problem, cache=cache)
    assert not verdict.right
    assert verdict.failed == check, verdict.detail


def test_many_experts_and_tokens(device: Runtime) -> None:
    """256 experts, most of them empty, and one row tile's worth of rows to each of few: against double."""
    found = formats.by_name("Q8_0")
    experts, n, k, tokens = 256, 8, 32, 700
    blocks = random_blocks(found, experts * n, np.random.default_rng(4))
    w = QuantTensor.from_blocks(found, blocks, (experts, n, k))
    rng = np.random.default_rng(5)
    ids = np.where(rng.random((tokens, 2)) < 0.5, 255, rng.integers(0, 256, (tokens, 2)))
    x, weights = rng.standard_normal((tokens, 2, k), np.float32), rng.random((tokens, 2), np.float32)
    call = GroupedCall.checked(x, w, experts, ids, weights, "zipf:1")
    kernel, tile = kernels.parse_tile("vulkan.mul_mm_direct_id:8,1,8,1,direct,n")
    limits = device.limits()
    held = upload(device, call.packed(w, limits.max_buffer_bytes, limits.arrangement))
    binary = device.compile(kernel.source(tile, call.problem, limits))
    y = call.run(device, Route(kernel, tile, "forced"), binary, held)
    device.free([s.buffer for s in held.slices])
    dense = w.dequantize().astype(np.float64).reshape(experts, n, k)
    want = (np.einsum("tjk,tjnk->tjn", x.astype(np.float64), dense[ids]) * weights[..., None]).sum(axis=1)
    assert np.square(y - want).sum() < 1e-10 * np.square(want).sum()


def bad_call(change: Callable[[dict[str, object]], object]) -> None:
    found = formats.by_name("Q8_0")
    w = QuantTensor.from_blocks(found, random_blocks(found, 6 * 4, np.random.default_rng(0)), (6, 4, 32))
    given: dict[str, object] = {
        "x": np.zeros((2, 32), np.float32), "w": w, "experts": 6, "ids": np.zeros((2, 2), int), "weights": None,
        "routing": "",
    }  # fmt: skip
    change(given)
    GroupedCall.checked(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ids", np.array([[0, 6], [1, 1]]), r"ids\[0, 1\] is 6, there are experts 0 to 5; 1 of 4"),
        ("ids", np.array([[0, -1], [1, 1]]), r"ids\[0, 1\] is -1"),
        ("ids", np.zeros((2, 2)), "whole numbers"),
        ("ids", np.zeros((3, 2), int), "x is"),
        ("x", np.zeros((2, 33), np.float32), "x is"),
        ("x", np.zeros((2, 32)), "float32"),
        ("weights", np.zeros((2, 1), np.float32), "weights are"),
        ("experts", 5, "does not hold 5 experts"),
    ],
)
def test_what_is_refused_before_a_launch(name: str, value: object, message: str) -> None:
    with pytest.raises(UnusableInput, match=message):
        bad_call(lambda given: given.update({name: value}))


def test_dense_and_grouped_kernels_keep_to_their_problems(device: Runtime) -> None:
    limits = device.limits()
    dense = Problem("Q4_K", 44, 512, 5)
    for kernel in kernels.for_runtime("vulkan"):
        grouped = isinstance(kernel, GroupedKernel)
        wrong = dense if grouped else UP
        assert not rank(wrong, limits, [kernel]), kernel.name
    kernel, tile = kernels.parse_tile(VEC)
    binary = device.compile(kernel.source(tile, UP, limits))
    with pytest.raises(UnusableInput, match="takes expert ids"):
        launches_of(kernel, binary, tile, UP, None, None, None)  # type: ignore[arg-type]
    assert any(rule.rule.startswith("columns = 1") for rule in kernel.broken_rules(_two_columns(tile), UP, limits))


def _two_columns(tile: Tile) -> Tile:
    return dataclasses.replace(tile, columns=2)  # type: ignore[call-arg]


def test_races_rotate_the_experts_that_are_read(device: Runtime) -> None:
    """One token of six experts takes two: the ids change from run to run, or all runs would read cached weights."""
    problem = dataclasses.replace(DOWN, m=1)
    bench = bench_for(device, problem, BenchWeights(seed=1, copies_bytes=1 << 16), fresh=True)
    assert len(bench.chosen) > 1
    assert len(bench.rotation) >= len(bench.chosen)
    ids = {device.download(c.ids, np.int32, (2,)).tobytes() for c in bench.chosen}
    assert len(ids) > 1
    release_job(device)
    proved = {}
    for text in (VEC, DIRECT):
        kernel, tile = kernels.parse_tile(text)
        proved[text] = prove(device, kernel, tile, problem).binary
    race = race_job(device, problem, VEC, [DIRECT], proved, BenchWeights(copies_bytes=1 << 16), 0.5, 0, rounds=2)[0]
    assert race.incumbent_seconds > 0
    release_job(device)


@pytest.mark.parametrize(("slots", "experts", "tile_m"), [(1, 256, 8), (300, 7, 16), (64, 128, 4)])
def test_the_grid_holds_the_tiles_of_any_ids(slots: int, experts: int, tile_m: int) -> None:
    problem = Problem("Q4_K", 8, 256, slots, experts=experts, top_k=1)
    groups = min(slots, experts + 1)
    sizes = np.array([slots - (groups - 1)] + [1] * (groups - 1))
    assert (-(-sizes // tile_m)).sum() <= most_tiles(problem, tile_m)
