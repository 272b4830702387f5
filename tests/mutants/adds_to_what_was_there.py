"""Atomic adds into an output that nobody cleared: right only after the harness zeroed it, wrong from then on."""

from __future__ import annotations

from tests.mutants.direct import changed
from tests.mutants.made_up import fault
from tests.mutants.planting import Mutant

STORED = "LOAD_N] = YVector(Y_ELEMENTS(a));"
MUTANTS = (
    Mutant(10, "sums are added to y as it was", "finite", "made-up", fault("accumulates"), "adds_to_what_was_there"),
    Mutant(
        10,
        "sums are added to y as it was",
        "finite",
        "lavapipe",
        changed(
            (STORED, "LOAD_N] += YVector(Y_ELEMENTS(a));"), ("writeonly buffer YVectorBuffer", "buffer YVectorBuffer")
        ),
        "adds_to_y_on_a_device",
    ),
)
