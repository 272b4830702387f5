"""Faults of the made-up kernel on the made-up device, whose memory a fault can read and write as a real one could."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes import FakeKernel, FakeRuntime, FakeTile
from tests.mutants.planting import Lab, Spoken, spoken
from warptile.contracts import Problem
from warptile.proof import prove

PROBLEM = Problem("Q4_1", n=200, k=768, m=24)
TILE = FakeTile()


def fault(
    name: str,
    *,
    problem: Problem = PROBLEM,
    tile: FakeTile = TILE,
    kernel: Callable[[], FakeKernel] = FakeKernel,
) -> Callable[[Lab, bool], Spoken]:
    """What the proof says of the made-up kernel with a fault, or without."""

    def run(lab: Lab, planted: bool) -> Spoken:
        made = kernel()
        one = FakeTile(tile.tile_m, tile.tile_n, tile.tile_k, name if planted else "none", tile.number)
        return spoken(prove(FakeRuntime(made.programs()), made, one, problem, cache=lab.cache))

    return run
