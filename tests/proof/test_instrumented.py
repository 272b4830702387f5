"""Instrumented proofs of shipped kernels: what is right stays right, and the barrier that order forgives is missed."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tests.kernels.test_mul_mm_coop_int8 import Emulated
from tests.kernels.test_mul_mm_coop_int8 import tile as one_warp
from warptile import kernels
from warptile.contracts import Kernel, Limits, Problem, Runtime, Source, Tile
from warptile.proof import ReferenceCache, prove
from warptile.proof.instrumented import _cases, instrumented

MMQ = (
    "vulkan.mul_mmq:block_size=32,tile_n=32,tile_m=16,tile_k=32,warp_n=16,warp_m=8,warp_iterations_n=1,thread_n=4,"
    "thread_m=2,thread_k=1,subgroup=8,bk_step=2,dot=int_dot,staged=packed,scales=fp16,loader=chunk"
)


@pytest.fixture(scope="module")
def cache() -> ReferenceCache:
    return ReferenceCache()


class Changed:
    """A kernel whose source text has one change."""

    def __init__(self, kernel: Kernel, pattern: str, instead: str) -> None:
        self._kernel = kernel
        self._change = (pattern, instead)

    def __getattr__(self, name: str) -> object:
        return getattr(self._kernel, name)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        source = self._kernel.source(tile, problem, limits)
        text, count = re.subn(*self._change, source.text)
        assert count == 1, "the planted fault no longer fits the shader"
        return dataclasses.replace(source, text=text)


def changed(kernel: object, pattern: str, instead: str) -> Kernel:
    return Changed(kernel, pattern, instead)  # type: ignore[return-value, arg-type]


END_OF_LOOP = (
    r"        barrier\(\);\n    \}\n\n    (\[\[unroll\]\] for \(uint t = 0u; t < ROWS_M)", r"    }\n\n    \1",
)  # fmt: skip


def test_the_barrier_at_the_end_of_a_step_is_missed_in_mul_mmq(device: Runtime, cache: ReferenceCache) -> None:
    """By the race check with both lines; and by other orders, in which another warp is the first to overwrite."""
    kernel, tile = kernels.parse_tile(MMQ)
    problem = Problem("Q4_K", 33, 256, 17)
    assert instrumented(device, kernel, tile, problem, cache=cache) is None
    found = instrumented(device, changed(kernel, *END_OF_LOOP), tile, problem, cache=cache)
    assert found is not None
    assert found.check == "race"
    assert "tile_w[at + i] = words[i];" in found.detail
    assert "read in line" in found.detail
    cases = list(_cases(device, kernel, tile, problem, 1, 0, cache))
    found = cases[0].reordered(device, changed(kernel, *END_OF_LOOP), tile, range(3))
    assert found is not None
    assert found.check == "schedule"


def test_the_same_in_mul_mm_coop_on_a_matrix_unit_of_shared_memory(device: Runtime, cache: ReferenceCache) -> None:
    own = one_warp("matrices_m=1,k_chunk=64,scales=broadcast,x_block=64")
    fault = (r"SYNC; +// every warp has read what the step before staged\n", "")
    problem = Problem("Q8_0", 16, 128, 16)
    found = instrumented(device, changed(Emulated(""), *fault), own, problem, cache=cache)
    assert found is not None
    assert found.check == "race"
    assert "no barrier between" in found.detail


def test_a_proof_at_level_full_watches(device: Runtime, cache: ReferenceCache) -> None:
    """A write past y that guard bands cannot see is named, with the source line; at level quick the proof is blind."""
    kernel, tile = kernels.parse_tile(
        "vulkan.mul_mat_vec:lanes_n=8,split_k=1,thread_n=1,columns=2,load_n=1,x_access=direct"
    )
    problem = Problem("Q4_0", 16, 32, 1)
    assert prove(device, kernel, tile, problem, "full", cache=cache).right
    mutant = changed(
        kernel, r"(mark_executed\(\);\n)", r"\1    if (gl_LocalInvocationIndex == 0u) Y[0x00ffffffu] = 1.0;\n"
    )
    assert prove(device, mutant, tile, problem, "quick", cache=cache).right
    verdict = prove(device, mutant, tile, problem, "full", cache=cache)
    assert (verdict.right, verdict.failed) == (False, "outside")
    assert "Y[16777215]" in verdict.detail
