"""An optimistic outlier won: one of many equal tiles looked faster once, and was served."""

from __future__ import annotations

import numpy as np

from tests.mutants.planting import Lab, Mutant, Spoken
from tests.race import arms
from warptile.contracts import Launch
from warptile.race import Terms, decide, race


def run(lab: Lab, planted: bool) -> Spoken:
    """The challenger is equal, but 10 % fast in the first race, as a lucky arm is; without the fault it is truly 10 %
    faster. The second race is on fresh buffers with another seed, as a tune's is."""
    found = []
    for seed in (1, 2):
        lucky = 0.9 if seed == 1 or not planted else 1.0
        rng = np.random.default_rng(seed)

        def taken(launch: Launch, now: float, lucky: float = lucky, rng: np.random.Generator = rng) -> float:
            own = 0.01 * (lucky if arms.number_of(launch) else 1.0)
            return float(own * np.exp(rng.normal(0, 0.01)))

        runtime = arms.simulated([0.01, 0.01])
        runtime.seconds = taken
        found += race(
            runtime,
            arms.arm(0),
            [arms.arm(1)],
            Terms(arms.bench(runtime), seed, 60, resolve=arms.resolve, clock=runtime.clock),
        )
    decision = decide(found[0], found[1])
    assert decide(found[0]).outcome == "undecided", "one race alone never decides"
    return Spoken("" if decision.outcome == "accept" else "confirm", decision.reason)


MUTANT = Mutant(12, "an equal tile that was lucky in its first race", "confirm", "made-up", run)
