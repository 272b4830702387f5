"""One element 5 % off, whole-buffer NMSE 3e-5: under every public tolerance."""

from __future__ import annotations

from tests.mutants.direct import changed
from tests.mutants.made_up import fault
from tests.mutants.planting import Mutant

STORE = "store_tile(first, step, m0);"
CELL = "if (gl_WorkGroupID == uvec3(0) && gl_LocalInvocationIndex == 0u) acc[0] *= 1.05;\n    "
MUTANTS = (
    Mutant(5, "the last element is 5 % off", "bound", "made-up", fault("wrong_cell"), "one_wrong_cell"),
    Mutant(
        5,
        "the first element is 5 % off",
        "bound",
        "lavapipe",
        changed((STORE, CELL + STORE)),
        "one_wrong_cell_on_a_device",
    ),
)
