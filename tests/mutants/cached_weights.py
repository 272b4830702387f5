"""Weights that stay in the level 2 cache made decode look faster than a model, which reads others in between, can
be."""

from __future__ import annotations

from tests.mutants.planting import Lab, Mutant, Spoken
from tests.race import arms
from warptile.race import Terms, decide, race


def run(lab: Lab, planted: bool) -> Spoken:
    """A bench of one copy, as large as the memory it was allowed, within the cache: the decision's line must say so."""
    runtime = arms.simulated([0.010, 0.008], cache_bytes=1 << 30 if planted else 4000)
    held = arms.bench(runtime, memory_bytes=2000 if planted else 1 << 20)
    found = race(
        runtime,
        arms.arm(0),
        [arms.arm(1)],
        Terms(held, 0, 60, resolve=arms.resolve, clock=runtime.clock),
    )
    reason = decide(found[0]).reason
    return Spoken("rotation" if "weights within the cache" in reason else "", reason)


MUTANT = Mutant(14, "one copy of the weights, which the cache holds", "rotation", "made-up", run)
