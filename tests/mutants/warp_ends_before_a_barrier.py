"""A warp whose rows lie past the end returns at once, and the others wait for it at the next barrier: the RDNA4
document's reason never to launch such a warp. Other devices hang; this one ends the workgroup, and the count of ends
shows it."""

from __future__ import annotations

from tests.mutants.missing_barrier_order_forgives import MMQ, MMQ_PROBLEM, MMQ_TILE, seen_by
from tests.mutants.planting import Mutant

RETURN = "    if (first_row + (warp % WARPS_N) * WARP_N >= P.rows) return;\n"

MUTANT = Mutant(
    0,
    "a warp without rows ends before the workgroup's barriers",
    "launch",
    "lavapipe",
    seen_by("checked", MMQ, MMQ_TILE, MMQ_PROBLEM, (r"(    const uint token = [^\n]*THREAD_M;\n)", r"\1" + RETURN)),
)
