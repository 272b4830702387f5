"""Instrumented builds as part of a proof. Barriers left out of shipped kernels: tests/mutants."""

from __future__ import annotations

import dataclasses
import re

import pytest

from warptile import kernels
from warptile.contracts import DoesNotFit, Kernel, Limits, Problem, Runtime, Source, Tile, Wrong
from warptile.proof import CHECKS, ReferenceCache, prove
from warptile.proof.jobs import watch_job


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


def test_a_proof_at_level_full_watches(device: Runtime, cache: ReferenceCache) -> None:
    """A write past y that guard bands cannot see is named, with the source line; at level quick the proof is blind."""
    kernel, tile = kernels.parse_tile(
        "vulkan.mul_mat_vec:lanes_n=8,split_k=1,thread_n=1,columns=2,load_n=1,x_access=direct"
    )
    problem = Problem("Q4_0", 16, 32, 1)
    sound = prove(device, kernel, tile, problem, "full", cache=cache)
    assert sound.right
    assert "checked builds of 2 shapes, 3 orders" in sound.detail
    assert sound.checks == CHECKS
    mutant = changed(
        kernel, r"(mark_executed\(\);\n)", r"\1    if (gl_LocalInvocationIndex == 0u) Y[0x00ffffffu] = 1.0;\n"
    )
    assert prove(device, mutant, tile, problem, "quick", cache=cache).right
    verdict = prove(device, mutant, tile, problem, "full", cache=cache)
    assert (verdict.right, verdict.failed) == (False, "outside")
    assert "Y[16777215]" in verdict.detail


def test_what_is_about_to_be_kept_is_watched(device: Runtime) -> None:
    """As a job of the worker: a kernel with a fault is wrong, one that the instrument cannot run is no worse for it."""
    tile = "vulkan.mul_mm_direct:lanes=8,thread_n=4,thread_m=4"
    problem = Problem("Q4_0", 64, 64, 5)
    watch_job(device, tile, problem)
    kernel, parsed = kernels.parse_tile(tile)
    racy = changed(
        kernel, r"(mark_executed\(\);\n)", r"\1    if (gl_LocalInvocationIndex == 0u) Y[0x00ffffffu] = 1.0;\n"
    )
    with pytest.raises(Wrong, match="outside: line"):
        watch_job(device, tile, problem, resolve=lambda _: (racy, parsed))
    many = changed(
        kernel,
        r"(mark_executed\(\);\n)",
        r"\1    for (uint i = 0u; i < 70000u + P.m; ++i) if (P.k + 70000u == i) return;\n",
    )
    with pytest.raises(DoesNotFit, match="loops"):
        watch_job(device, tile, problem, resolve=lambda _: (many, parsed))
