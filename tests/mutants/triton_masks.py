"""A Triton kernel whose masks forget an end: steps past k, rows past y."""

from __future__ import annotations

from tests.mutants.faulty_triton import FAULTS, interpreted
from tests.mutants.planting import Mutant

MUTANTS = tuple(
    Mutant(pitfall, plants, FAULTS[fault][0], "interpreter", interpreted(fault), f"triton_{fault}")
    for pitfall, fault, plants in (
        (17, "k_tail_unmasked", "activations past the end of k are read and multiplied"),
        (7, "one_row_unwritten", "the last row of y is masked out"),
        (0, "rows_unmasked", "rows past y are written"),
    )
)
