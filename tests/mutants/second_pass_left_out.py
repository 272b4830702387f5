"""A first pass that is skipped goes unseen where its result of an earlier run is still there."""

from __future__ import annotations

from tests.fakes import FakeRuntime, FakeTile, TwoPassKernel
from tests.mutants.made_up import PROBLEM
from tests.mutants.planting import Lab, Mutant, Spoken, spoken
from warptile.proof import prove


def run(lab: Lab, planted: bool) -> Spoken:
    kernel = TwoPassKernel()
    runtime = FakeRuntime(kernel.programs())
    assert prove(runtime, kernel, FakeTile(), PROBLEM, cache=lab.cache).right
    tile = FakeTile(fault="no_helper" if planted else "none")
    return spoken(prove(runtime, kernel, tile, PROBLEM, cache=lab.cache))


MUTANT = Mutant(10, "a pass relies on what an earlier run left in scratch memory", "finite", "made-up", run)
