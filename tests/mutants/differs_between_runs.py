"""What a race leaves behind: two runs on equal inputs that differ in a last bit, far inside any tolerance."""

from __future__ import annotations

from tests.mutants.made_up import fault
from tests.mutants.planting import Mutant

MUTANT = Mutant(
    4, "every second run differs by one unit in the last place", "deterministic", "made-up", fault("nondeterministic")
)
