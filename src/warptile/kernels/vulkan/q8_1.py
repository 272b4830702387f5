"""The pre-pass of integer kernels: activations to int8 blocks of 32 with an fp32 scale, in scratch memory."""

from __future__ import annotations

from importlib import resources

from warptile.contracts import Binary, Buffer, Launch, Problem, Scratch, Source
from warptile.kernels.price_model import ceil_div

BLOCK = 32
BLOCK_WORDS = 9
"""Eight words of codes and one of scale."""

_THREADS = 64
_MOST_ACROSS = 32768
"""Workgroups along x; further ones go along y, since no device need take more than 65535 along an axis."""


def source() -> Source:
    """The helper that quantizes; it depends on nothing."""
    text = resources.files(__package__).joinpath("q8_1.comp").read_text(encoding="utf-8")
    return Source("glsl", text, ((0, _THREADS),), bindings=2, scalars=1, workgroup=_THREADS)


def scratch(problem: Problem) -> Scratch:
    """Where the quantized x[m, k] lies: u32[m, k / 32, 9]."""
    return Scratch("q8_1", 4 * BLOCK_WORDS * problem.m * (problem.k // BLOCK))


def launch(helper: Binary, problem: Problem, x: Buffer) -> Launch:
    """The dispatch that fills `scratch(problem)` from x[m, k], fp32."""
    blocks = problem.m * (problem.k // BLOCK)
    groups = ceil_div(blocks, _THREADS)
    across = min(groups, _MOST_ACROSS)
    return Launch(helper, (x, scratch(problem)), (blocks,), (across, ceil_div(groups, across), 1))
