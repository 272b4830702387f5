"""A write so far past y that no guard band is there to show it."""

from __future__ import annotations

from tests.mutants.planting import Mutant
from tests.mutants.watching import DIRECT, watched

INDEX = "YVectors[(Y_ROW(m0 + i) * P.y_stride + P.row0 + n) / LOAD_N]"
STORE = f"{INDEX} = YVector(Y_ELEMENTS(a));"
FAR = INDEX.replace("+ n)", "+ n + 40000u)")

MUTANT = Mutant(
    0,
    "an element more than 64 KiB past y is written",
    "outside",
    "lavapipe",
    watched(DIRECT, (STORE, f"{STORE} if (n == 0u) {FAR} = YVector(Y_ELEMENTS(a));")),
)
