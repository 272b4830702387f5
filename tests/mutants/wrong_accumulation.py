"""Sums that go wrong where no small test looks: a sum met twice, a row index that wraps, a neighbour's scale."""

from __future__ import annotations

from tests.fakes import FakeKernel
from tests.mutants.direct import changed
from tests.mutants.made_up import fault
from tests.mutants.planting import Mutant
from warptile.contracts import Problem

MUTANTS = (
    Mutant(
        0,
        "the last accumulator is added twice in every chunk",
        "nmse",
        "lavapipe",
        changed(
            (
                "acc[(i0 + r) * THREAD_N + j] += dot(w[j * 8u + s], x);",
                "acc[(i0 + r) * THREAD_N + j] += dot(w[j * 8u + s], x) * (i0 + r == THREAD_M - 1u ? 2.0 : 1.0);",
            )
        ),
        "repeated_accumulator",
    ),
    Mutant(
        0,
        "an index wraps at 128 rows, and no boundary shape has as many",
        "nmse",
        "made-up",
        fault("wraps_after_128_rows", problem=Problem("Q4_1", 200, 64, 8)),
        "index_wraps",
    ),
    Mutant(
        0,
        "every block is scaled by its neighbour's scale",
        "nmse",
        "made-up",
        fault("neighbours_scale"),
        "neighbours_scale",
    ),
    Mutant(
        0,
        "one code bit, which the rounding of fp16 operands hides",
        "exact",
        "made-up",
        fault("flipped_late_code_bit", kernel=lambda: FakeKernel("fp16")),
        "code_bit_hidden_by_rounding",
    ),
)
