"""Numbers at the edges: NaN that becomes a number, a store that saturates, subnormals flushed, rows that spoil
others."""

from __future__ import annotations

from tests.mutants.direct import changed
from tests.mutants.made_up import fault
from tests.mutants.planting import Mutant
from warptile.contracts import Problem

STORED = "YVector(Y_ELEMENTS(a));"
HALF = Problem("Q4_1", n=200, k=768, m=24, x_dtype="fp16", y_dtype="fp16")

MUTANTS = (
    Mutant(
        0,
        "NaN sums are stored as 0",
        "special",
        "lavapipe",
        changed(
            (
                "    store_tile",
                "    for (uint a = 0u; a < THREAD_M * THREAD_N; ++a) if (isnan(acc[a])) acc[a] = 0.0;\n    store_tile",
            )
        ),
        "nan_stored_as_zero",
    ),
    Mutant(
        0,
        "sums beyond fp16's largest are stored as its largest",
        "special",
        "made-up",
        fault("saturates", problem=HALF),
        "fp16_saturates",
    ),
    Mutant(
        0,
        "a NaN in one row of x reaches the row after it",
        "special",
        "made-up",
        fault("nan_reaches_the_next_row"),
        "nan_reaches_the_next_row",
    ),
    Mutant(
        0,
        "subnormal activations count as zero",
        "special",
        "made-up",
        fault("flushes_subnormal_activations", problem=HALF),
        "subnormal_activations_flushed",
    ),
    Mutant(
        0,
        "subnormal scales count as zero",
        "bound",
        "made-up",
        fault("flushes_subnormal_scales"),
        "subnormal_scales_flushed",
    ),
    Mutant(
        0,
        "blocks of zeros are divided by their scale",
        "finite",
        "made-up",
        fault("divides_by_the_scale"),
        "zero_blocks_divided",
    ),
)
