"""The clock fell while the second arm ran, and a 2.7 times slower tile was picked: here the device slows down to that
over the race, for whoever runs."""

from __future__ import annotations

import numpy as np

from tests.mutants.planting import Lab, Mutant, Spoken
from tests.race import arms
from warptile.contracts import Launch
from warptile.race import Terms, decide, race


def run(lab: Lab, planted: bool) -> Spoken:
    """Equal arms on a device that throttles to a 2.7th; without the fault the challenger is truly 1.3 times faster."""
    found = []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        runtime = arms.simulated([0.01, 0.01])

        def taken(launch: Launch, now: float, rng: np.random.Generator = rng) -> float:
            clock = 1 + 1.7 * min(1.0, now / 1.0) if planted else 1.0
            own = 0.01 / (1.3 if not planted and arms.number_of(launch) else 1.0)
            return float(own * clock * np.exp(rng.normal(0, 0.005)))

        runtime.seconds = taken
        found += race(
            runtime,
            arms.arm(0),
            [arms.arm(1)],
            Terms(arms.bench(runtime), seed, 60, resolve=arms.resolve, clock=runtime.clock),
        )
    decision = decide(found[0], found[1])
    return Spoken("" if decision.outcome == "accept" else "interval", decision.reason)


MUTANT = Mutant(13, "the device's clock falls to a 2.7th during the race", "interval", "made-up", run)
