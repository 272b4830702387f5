"""A candidate hung the tuner, and every timing before it was lost. Here it hangs in its worker, past its deadline."""

from __future__ import annotations

from support import worker_jobs as jobs

from tests.fakes_loop import WORKLOAD, FakeKernel, FakeStand, FakeTile, budget, places
from tests.mutants.planting import Lab, Mutant, Spoken
from warptile.contracts import Timeout
from warptile.journal import Journal
from warptile.runtimes.worker import Worker
from warptile.tune import tune_on

HANGS = FakeTile(8, 4).text()


def hung_worker(lab: Lab, planted: bool) -> Spoken:
    """A job that never ends, and a job after it: the second must run, in a worker of its own."""
    with Worker(lab.fixture("software_device"), lab.places) as worker:
        first = worker.run(jobs.pid)
        try:
            worker.run(jobs.sleep, 3600.0 if planted else 0.0, deadline=0.5)
        except Timeout as error:
            assert worker.run(jobs.add, 2, 3) == 5
            assert worker.pid != first
            return Spoken("timeout", str(error))
        return Spoken("")


def timings_kept(lab: Lab, planted: bool) -> Spoken:
    """What was timed before the hang is in the journal, and the run's other winners are in the table."""
    stand = FakeStand(race_faults={HANGS: Timeout("hung")} if planted else {})
    result = tune_on(
        stand, WORKLOAD, (128,), budget(stand), places(lab.folder / str(planted)), None, kernels=[FakeKernel()]
    )  # type: ignore[list-item]
    entries = list(Journal(lab.folder / str(planted) / "state" / "journal").entries())
    assert sum(e["kind"] == "race" for e in entries) >= 3
    assert len(result.rows) == 3
    out = [e for e in entries if e["kind"] == "candidate" and e["tile"] == HANGS]
    return Spoken(out[0]["outcome"] if out else "", out[0]["reason"] if out else "")


MUTANTS = (
    Mutant(22, "a candidate hangs in its worker", "timeout", "lavapipe", hung_worker, "candidate_that_hangs"),
    Mutant(22, "a candidate hangs in its race", "timeout", "made-up", timings_kept, "candidate_that_hangs_in_its_race"),
)
