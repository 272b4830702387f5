"""No test shape held a whole tile (rows % 128 = 0), so the variant that serves never ran under test."""

from __future__ import annotations

from tests.fakes import FakeKernel, FakeRuntime, FakeTile
from tests.mutants.made_up import PROBLEM
from tests.mutants.planting import Lab, Mutant, Spoken, spoken
from warptile.proof import prove


def run(lab: Lab, planted: bool) -> Spoken:
    """The rules let through only shapes smaller than the tile, and the problem itself, which is smaller too."""
    kernel = FakeKernel(rule=lambda tile, problem: problem.n < tile.tile_n or problem.n == PROBLEM.n)
    tile = FakeTile(tile_n=2048 if planted else 8)
    if not planted:
        kernel = FakeKernel()
    return spoken(prove(FakeRuntime(kernel.programs()), kernel, tile, PROBLEM, cache=lab.cache))


MUTANT = Mutant(8, "no shape that may run holds a whole tile", "reached", "made-up", run)
