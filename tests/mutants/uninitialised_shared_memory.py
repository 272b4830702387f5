"""Shared memory that a tail never wrote: what an earlier launch left there is often zero, and right."""

from __future__ import annotations

from tests.mutants.planting import Mutant
from tests.mutants.watching import STAGED, watched

WRITTEN = "tile_x[token * STRIDE + 2u * quad + 1u] = PAIR(x.zw);"

MUTANT = Mutant(
    0,
    "shared words past the end of x are read, and nobody wrote them",
    "uninitialised",
    "lavapipe",
    watched(STAGED, (WRITTEN, f"if (inside) {WRITTEN}")),
)
