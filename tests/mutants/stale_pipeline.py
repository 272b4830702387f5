"""The harness runs a pipeline left from another build; the kernel that ran writes its own id, not the one expected."""

from __future__ import annotations

from tests.mutants.direct import changed
from tests.mutants.planting import Mutant

MUTANT = Mutant(
    1,
    "what runs is another build than the one compiled",
    "launch",
    "lavapipe",
    changed(("executed[P.slot] = BUILD_ID", "executed[P.slot] = BUILD_ID ^ 1u")),
)
