"""A rejected configuration's log looked like the user's error: every way a candidate fails is an outcome with a
reason of one line in the journal, and the run goes on."""

from __future__ import annotations

from tests.fakes_loop import WORKLOAD, FakeKernel, FakeStand, FakeTile, budget, places
from tests.mutants.planting import Lab, Mutant, Spoken
from warptile.contracts import CompileFailed
from warptile.journal import Journal
from warptile.tune import tune_on

BEST = FakeTile(8, 4).text()
LOG = "ptxas fatal: Unresolved extern\nTraceback (most recent call last):\n  File kernel.py, line 3"


def run(lab: Lab, planted: bool) -> Spoken:
    """The best tile's compiler fails with a log of many lines."""
    stand = FakeStand(faults={BEST: CompileFailed(LOG)} if planted else {})
    result = tune_on(
        stand, WORKLOAD, (128,), budget(stand), places(lab.folder / str(planted)), None, kernels=[FakeKernel()]
    )  # type: ignore[list-item]
    assert all(row.tile is not None and row.ratio is not None and row.ratio > 1 for row in result.rows)
    lines = Journal(lab.folder / str(planted) / "state" / "journal").entries()
    out = [e for e in lines if e["kind"] == "candidate" and e["tile"] == BEST]
    if not out:
        return Spoken("")
    assert all("\n" not in e["reason"] for e in out), "a reason is one line"
    return Spoken(out[0]["outcome"], out[0]["reason"])


MUTANT = Mutant(21, "the compiler refuses a candidate with a log of many lines", "compile", "made-up", run)
