"""Writes just outside a buffer, and into an input: what lies between guard bands shows them."""

from __future__ import annotations

from tests.mutants.direct import changed
from tests.mutants.made_up import fault
from tests.mutants.planting import Mutant

MUTANTS = (
    Mutant(0, "the word after y is written", "guards", "made-up", fault("writes_past_y"), "writes_past_y"),
    Mutant(0, "the word before w is written", "guards", "made-up", fault("writes_before_w"), "writes_before_w"),
    Mutant(0, "x is written to", "inputs", "made-up", fault("modifies_x"), "modifies_x"),
    Mutant(0, "w is written to", "inputs", "made-up", fault("modifies_w"), "modifies_w"),
    Mutant(
        0,
        "rows past the slice are written",
        "guards",
        "lavapipe",
        changed(("if (n < P.rows && m0 + i < TOKENS)", "if (m0 + i < TOKENS)")),
        "writes_rows_past_the_slice",
    ),
)
