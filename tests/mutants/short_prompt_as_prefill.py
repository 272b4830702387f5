"""A prompt of 20 tokens quoted as prefill: rates carry their M, and what was measured at another M is not served as
tuned, nor kept under it."""

from __future__ import annotations

import dataclasses

from tests.mutants.foreign_cache_entry import HERE, LAYOUT, POINT, PROBLEM
from tests.mutants.planting import Lab, Mutant, Spoken
from tests.race import arms
from warptile.contracts import Arm, UnusableInput
from warptile.proof import PROOF_VERSION
from warptile.race import Terms, race
from warptile.tables import Table

PREFILL = PROBLEM.at(512)


def kept(lab: Lab, planted: bool) -> Spoken:
    table = Table.load(lab.folder, HERE)
    try:
        table.put(PREFILL, LAYOUT, dataclasses.replace(POINT, m=20 if planted else 512))
    except ValueError as error:
        return Spoken("m", str(error))
    return Spoken("")


def served(lab: Lab, planted: bool) -> Spoken:
    table = Table.load(lab.folder, HERE)
    m = 128 if planted else 512
    table.put(PROBLEM.at(m), LAYOUT, dataclasses.replace(POINT, m=m))
    found = table.lookup(PREFILL, LAYOUT, PROOF_VERSION)
    if found is None:
        return Spoken("untuned", "nothing near")
    return Spoken("" if found.status == "tuned" else found.status, found.why)


def raced(lab: Lab, planted: bool) -> Spoken:
    """An arm that claims 512 tokens on a bench of fewer."""
    runtime = arms.simulated([0.01, 0.01])
    first = arms.arm(0)
    claimed = Arm(first.tile, arms.PROBLEM.at(512)) if planted else first
    try:
        race(
            runtime,
            claimed,
            [],
            Terms(arms.bench(runtime), 0, 1.0, resolve=arms.resolve, clock=runtime.clock),
        )
    except UnusableInput as error:
        return Spoken("m", str(error))
    return Spoken("")


MUTANTS = (
    Mutant(15, "a point measured at 20 tokens kept for 512", "m", "paper", kept, "short_prompt_kept_as_prefill"),
    Mutant(15, "a winner of 128 tokens asked for 512", "untuned", "paper", served, "short_prompt_served_as_prefill"),
    Mutant(15, "an arm of 512 tokens timed on 3", "m", "made-up", raced, "short_prompt_raced_as_prefill"),
)
