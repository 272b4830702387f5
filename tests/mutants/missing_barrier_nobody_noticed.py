"""The missing barrier of the RDNA4 document, on a device whose order of warps may forgive it: the checked build knows
that nothing stands between the read and the write."""

from __future__ import annotations

from tests.mutants.planting import Mutant
from tests.mutants.watching import STAGED, watched

MUTANT = Mutant(
    4,
    "no barrier between the last read of a shared tile and its next overwrite",
    "race",
    "lavapipe",
    watched(STAGED, ("        barrier();\n    }\n", "    }\n")),
)
