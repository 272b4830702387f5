"""n_tiles = n / tile instead of its ceiling: the columns of the last, ragged tile are never written."""

from __future__ import annotations

from tests.mutants.direct import changed
from tests.mutants.made_up import fault
from tests.mutants.planting import Mutant

MUTANTS = (
    Mutant(
        7, "columns of the last ragged tile are left out", "written", "made-up", fault("floor_n"), "columns_left_over"
    ),
    Mutant(7, "rows of the last ragged tile are left out", "written", "made-up", fault("floor_m"), "rows_left_over"),
    Mutant(
        7,
        "the last row of every launch is left out",
        "written",
        "lavapipe",
        changed(("m0 + i < TOKENS)", "m0 + i + 1u < TOKENS)")),
        "last_row_left_over",
    ),
    Mutant(7, "an empty grid is launched", "launch", "made-up", fault("empty_grid"), "empty_grid"),
    Mutant(
        7,
        "the second weight slice is written over the first",
        "written",
        "made-up",
        fault("forgets_row0"),
        "slice_forgotten",
    ),
)
