"""How activations are cut into blocks that share a scale, so that a dot product of one block is whole numbers alone."""

from __future__ import annotations

from dataclasses import dataclass

from warptile.contracts import Problem
from warptile.kernels.triton.common import arranged
from warptile.layouts.triton import Arrangement

BLOCK = 32
NAMES = {32: "q8_1", 64: "q8_64", 128: "q8_128", 256: "q8_256"}


@dataclass(frozen=True)
class Blocks:
    """size: elements a block of activations has, and a dot product. parts: groups of weights in it (1, or 2 of 16); the
    sums of codes are kept for each. name: what `Arithmetic.activations` calls it."""

    size: int
    parts: int

    @property
    def name(self) -> str:
        """`q8_1` for blocks of 32, else `q8_SIZE`."""
        return NAMES[self.size]


def blocks_of(problem: Problem) -> Blocks:
    """32 elements; where a step of the weights' arrangement has one scale (ternary formats), the step."""
    return _blocks(arranged(problem))


def _blocks(arrangement: Arrangement) -> Blocks:
    groups = max(1, arrangement.scales.groups)
    if groups == 1:
        return Blocks(arrangement.step, 1)
    return Blocks(BLOCK, max(1, groups * BLOCK // arrangement.step))
