"""The proof on a real device: right kernels are right in every format, and a wrong shader is caught by its check."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.support.models import smollm2
from warptile import kernels
from warptile.contracts import Kernel, Launch, Limits, Problem, Runtime, Source, Tile
from warptile.places import Places
from warptile.proof import ReferenceCache, prove
from warptile.proof.jobs import RealWeights, prove_job, real_blocks
from warptile.runtimes.worker import Worker

FORMATS = ("Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q4_K", "Q6_K")
DIRECT = "vulkan.mul_mm_direct:lanes=8,thread_n=4,thread_m=4"


@pytest.fixture(scope="module")
def cache() -> ReferenceCache:
    return ReferenceCache()


def first_valid(kernel: Kernel, problem: Problem, limits: Limits) -> Tile:
    return next(t for t in kernel.space(problem, limits) if not kernel.broken_rules(t, problem, limits))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kernel", ["vulkan.mul_mm_direct", "vulkan.mul_mm", "vulkan.mul_mat_vec"])
def test_kernels_are_right(device: Runtime, cache: ReferenceCache, kernel: str, name: str) -> None:
    found = kernels.by_name(kernel)
    problem = Problem(name, n=192, k=512, m=4 if kernel.endswith("vec") else 24)
    verdict = prove(device, found, first_valid(found, problem, device.limits()), problem, cache=cache)
    assert verdict.right, f"{verdict.failed}: {verdict.detail}"
    assert 0 < verdict.worst_ratio < 1
    assert len(verdict.shapes) >= 6


class Mutant:
    """A kernel whose shader text has one change."""

    def __init__(self, kernel: Kernel, before: str, after: str) -> None:
        self._kernel = kernel
        self._change = (before, after)

    def __getattr__(self, name: str) -> object:
        return getattr(self._kernel, name)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        source = self._kernel.source(tile, problem, limits)
        assert self._change[0] in source.text, "the planted fault no longer fits the shader"
        return dataclasses.replace(source, text=source.text.replace(*self._change))


@pytest.mark.parametrize(
    ("check", "before", "after"),
    [
        ("launch", "executed[P.slot] = BUILD_ID", "executed[P.slot] = BUILD_ID ^ 1u"),
        ("guards", "if (n < P.rows && m0 + i < TOKENS)", "if (m0 + i < TOKENS)"),
        ("written", "m0 + i < TOKENS)", "m0 + i + 1u < TOKENS)"),
        ("finite", "chunk < TILE_CHUNKS", "chunk <= TILE_CHUNKS"),
        ("bound", "unpackHalf2x16(", "unpackHalf2x16(16u ^ "),
        ("nmse", "chunk < TILE_CHUNKS", "chunk < TILE_CHUNKS - 1u"),
    ],
)
def test_a_wrong_shader_is_caught(device: Runtime, cache: ReferenceCache, check: str, before: str, after: str) -> None:
    """Stale ids, rows past the slice, a row short, a chunk past k, one flipped bit of every scale, a chunk short."""
    kernel, tile = kernels.parse_tile(DIRECT)
    mutant: Kernel = Mutant(kernel, before, after)  # type: ignore[assignment]
    verdict = prove(device, mutant, tile, Problem("Q4_1", 192, 512, 24), cache=cache)
    assert not verdict.right
    assert verdict.failed == check, verdict.detail


class HalfGrid(Mutant):
    """Dispatched by divisors of a tile twice as large: half the work, and twice the speed."""

    def launch(self, *arguments: object) -> tuple[Launch, ...]:
        launches: tuple[Launch, ...] = self._kernel.launch(*arguments)  # type: ignore[arg-type]
        return tuple(dataclasses.replace(one, grid=(-(-one.grid[0] // 2), *one.grid[1:])) for one in launches)


def test_stale_dispatch_divisors_are_caught(device: Runtime, cache: ReferenceCache) -> None:
    kernel, tile = kernels.parse_tile(DIRECT)
    mutant: Kernel = HalfGrid(kernel, "void main", "void main")  # type: ignore[assignment]
    verdict = prove(device, mutant, tile, Problem("Q4_1", 192, 512, 24), cache=cache)
    assert (verdict.right, verdict.failed) == (False, "written"), verdict.detail


def test_a_models_own_weights_through_the_worker(software_device: str, places: Places) -> None:
    real = RealWeights(str(smollm2()), "blk.0.ffn_gate.weight")
    problem = Problem("Q4_1", 1536, 576, 128)
    with Worker(software_device, places) as worker:
        verdict = worker.run(prove_job, DIRECT, problem, "quick", 0, real, deadline=120.0)
    assert verdict.right, verdict.detail
    assert (9, 64, 576) in verdict.shapes


def test_real_rows_are_spread_over_the_tensor() -> None:
    real = RealWeights(str(smollm2()), "blk.0.ffn_gate.weight", rows=3)
    blocks = real_blocks(real, Problem("Q4_1", 1536, 576, 1))
    from warptile.weights import QuantTensor

    tensor = QuantTensor.from_gguf(real.path, real.tensor)
    assert (blocks == tensor.blocks[np.array([0, 767, 1535])]).all()
