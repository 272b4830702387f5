"""A tile that passes every proof and wins its race, since nobody consumes what it reads past the weights: a tune runs
its instrumented builds before it keeps it."""

from __future__ import annotations

from tests.fakes_loop import WORKLOAD, FakeKernel, FakeStand, FakeTile, budget, places
from tests.mutants.planting import Lab, Mutant, Spoken
from warptile.journal import Journal
from warptile.tune import tune_on

BEST = FakeTile(8, 4).text()


def run(lab: Lab, planted: bool) -> Spoken:
    stand = FakeStand(watched_wrong=frozenset([BEST]) if planted else frozenset())
    folder = lab.folder / str(planted)
    result = tune_on(stand, WORKLOAD, (128,), budget(stand), places(folder), None, kernels=[FakeKernel()])  # type: ignore[list-item]
    kept = {row.tile for row in result.rows}
    out = [e for e in Journal(folder / "state" / "journal").entries() if e["kind"] == "candidate" and e["tile"] == BEST]
    assert (BEST in kept) != planted
    return Spoken(out[0]["outcome"] if out else "", out[0]["reason"] if out else "")


MUTANT = Mutant(3, "the tile that wins reads past the weights", "wrong", "made-up", run)
