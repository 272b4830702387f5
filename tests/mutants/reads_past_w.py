"""A staging loop read up to 32 rows past the weights. No output ever changed, since nobody consumed them: only a build
that knows every buffer's true extent sees it."""

from __future__ import annotations

from tests.mutants.planting import Mutant
from tests.mutants.watching import DIRECT, watched

CLAMPED = "min(first + g * step, P.rows - LOAD_N)"

MUTANT = Mutant(
    3,
    "rows past the weights are read and dropped",
    "outside",
    "lavapipe",
    watched(DIRECT, (CLAMPED, "first + g * step")),
)
