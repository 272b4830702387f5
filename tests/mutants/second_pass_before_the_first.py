"""Two launches of one kernel whose order the harness does not keep: the sum is read before it is written."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fakes import FakeRuntime, FakeTile, TwoPassKernel
from tests.mutants.made_up import PROBLEM
from tests.mutants.planting import Lab, Mutant, Spoken, spoken
from warptile.contracts import Launch
from warptile.proof import prove


class Unordered(FakeRuntime):
    def execute(self, launches: Sequence[Launch]) -> None:
        super().execute(list(launches)[::-1])
        self._ids.reverse()


def run(lab: Lab, planted: bool) -> Spoken:
    kernel = TwoPassKernel()
    runtime = (Unordered if planted else FakeRuntime)(kernel.programs())
    return spoken(prove(runtime, kernel, FakeTile(), PROBLEM, cache=lab.cache))


MUTANT = Mutant(19, "a pass does not wait for the one before it", "finite", "made-up", run)
