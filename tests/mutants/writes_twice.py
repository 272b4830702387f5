"""Two invocations own one element: with equal values nothing shows it, until one of them is late."""

from __future__ import annotations

from tests.mutants.planting import Mutant
from tests.mutants.watching import DIRECT, watched

INDEX = "YVectors[(Y_ROW(m0 + i) * P.y_stride + P.row0 + n) / LOAD_N]"
STORE = f"{INDEX} = YVector(Y_ELEMENTS(a));"

MUTANT = Mutant(
    0,
    "every element of y is written twice, with the same value",
    "once",
    "lavapipe",
    watched(DIRECT, (STORE, f"{{ {STORE} {STORE} }}")),
)
