"""Results tuned on an H20 were poor on an H200: what comes with the package serves exactly the device it names."""

from __future__ import annotations

import dataclasses

from tests.mutants.foreign_cache_entry import HERE, POINT, PROBLEM, SIBLING
from tests.mutants.planting import Lab, Mutant, Spoken
from warptile.tables import Table, shipped_table


def run(lab: Lab, planted: bool) -> Spoken:
    """A package whose only table is the H20's, asked for the H200's."""
    made = Table.load(lab.folder, SIBLING if planted else HERE)
    made.put(PROBLEM, "q4_k", dataclasses.replace(POINT))
    made.save()
    found = shipped_table(HERE, lab.folder)
    return Spoken("device", "no table of this device") if found is None or not found.rows() else Spoken("")


MUTANT = Mutant(24, "only a sibling card's table is shipped", "device", "paper", run)
