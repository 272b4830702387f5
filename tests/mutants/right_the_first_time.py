"""Atomics under an autotuner: the first result was right, later ones held what earlier runs had added. Proofs run a
kernel twice on fresh buffers, so only a look at what it computes after it was raced shows it."""

from __future__ import annotations

from tests.fakes import Call
from tests.mutants.planting import Lab, Mutant, Spoken
from tests.race import arms
from warptile.contracts import Wrong
from warptile.race import Terms, race

FIRST_RUNS = 2


def run(lab: Lab, planted: bool) -> Spoken:
    """The challenger counts its runs in memory that nobody clears, and adds the count to y from the third on."""
    runtime = arms.simulated([0.010, 0.008])
    right, runs = runtime.programs["matmul"], []

    def program(call: Call) -> None:
        right(call)
        runs.append(call)
        if planted and arms.number_of(call.launch) == 1 and len(runs) > FIRST_RUNS:
            call.payload(2, "fp32")[0] += len(runs)

    runtime.programs["matmul"] = program
    try:
        race(
            runtime,
            arms.arm(0),
            [arms.arm(1)],
            Terms(arms.bench(runtime), 0, 60, resolve=arms.resolve, clock=runtime.clock),
        )
    except Wrong as error:
        return Spoken("outputs", str(error))
    return Spoken("")


MUTANT = Mutant(10, "a kernel adds what earlier runs left, from its third run on", "outputs", "made-up", run)
