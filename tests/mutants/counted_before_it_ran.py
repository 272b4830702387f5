"""A counter raised before the launch counts a launch that never happens: here the id is stored, then nothing is
done."""

from __future__ import annotations

from tests.mutants.direct import changed
from tests.mutants.planting import Mutant

MUTANT = Mutant(
    2,
    "the kernel reports that it ran, and returns before it does anything",
    "written",
    "lavapipe",
    changed(("    mark_executed();\n", "    mark_executed();\n    if (P.m > 0u) return;\n")),
)
