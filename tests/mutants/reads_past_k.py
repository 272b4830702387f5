"""K that is no multiple of the step: reads past the row, times zero, are NaN where the bytes beyond are."""

from __future__ import annotations

from tests.fakes import FakeTile
from tests.mutants.direct import changed
from tests.mutants.made_up import fault
from tests.mutants.planting import Mutant

WIDE = FakeTile(tile_k=96)
CHUNKS = "chunk < TILE_CHUNKS"
MUTANTS = (
    Mutant(
        17,
        "bytes past the last row, times zero, are added",
        "finite",
        "made-up",
        fault("reads_past_k", tile=WIDE),
        "reads_past_k",
    ),
    Mutant(
        17,
        "the part of k after the last whole step is left out",
        "bound",
        "made-up",
        fault("k_tail", tile=WIDE),
        "k_tail_left_out",
    ),
    Mutant(
        17,
        "one step of k too many",
        "finite",
        "lavapipe",
        changed((CHUNKS, "chunk <= TILE_CHUNKS")),
        "one_step_of_k_too_many",
    ),
    Mutant(
        17,
        "one step of k too few",
        "nmse",
        "lavapipe",
        changed((CHUNKS, "chunk < TILE_CHUNKS - 1u")),
        "one_step_of_k_too_few",
    ),
)
