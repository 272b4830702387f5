"""A harness that notes launches as it describes them, and then drops one: nothing ran, the count says it did."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fakes import FakeKernel, FakeRuntime, FakeTile
from tests.mutants.made_up import PROBLEM
from tests.mutants.planting import Lab, Mutant, Spoken, spoken
from warptile.contracts import Launch
from warptile.proof import prove


class Counting(FakeRuntime):
    def execute(self, launches: Sequence[Launch]) -> None:
        self._ids = [launch.binary.id for launch in launches]


def run(lab: Lab, planted: bool) -> Spoken:
    kernel = FakeKernel()
    runtime = (Counting if planted else FakeRuntime)(kernel.programs())
    return spoken(prove(runtime, kernel, FakeTile(), PROBLEM, cache=lab.cache))


MUTANT = Mutant(2, "the harness counts launches that it drops", "written", "made-up", run)
