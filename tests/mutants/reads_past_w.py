"""A staging loop read up to 32 rows past the weights. No output ever changed, since nobody consumed them: only a build
that knows every buffer's true extent sees it."""

from __future__ import annotations

from tests.mutants.planting import Mutant
from tests.mutants.watching import DIRECT, STAGED, watched

CLAMPED = "min(first + g * step, P.rows - LOAD_N)"
INDEX = "YVectors[(Y_ROW(m0 + i) * P.y_stride + P.row0 + n) / LOAD_N]"
STORE = f"{INDEX} = YVector(Y_ELEMENTS(a));"

MUTANTS = (
    Mutant(
        3,
        "rows past the weights are read and dropped",
        "outside",
        "lavapipe",
        watched(DIRECT, (CLAMPED, "first + g * step")),
        "reads_past_w",
    ),
    Mutant(
        0,
        "an element 64 KiB and more past y is written, beyond any guard band",
        "outside",
        "lavapipe",
        watched(
            DIRECT, (STORE, STORE + f" if (n == 0u) {INDEX.replace('+ n)', '+ n + 40000u)')} = YVector(Y_ELEMENTS(a));")
        ),
        "writes_far_past_y",
    ),
    Mutant(
        0,
        "every element of y is written twice, with the same value",
        "once",
        "lavapipe",
        watched(DIRECT, (STORE, f"{{ {STORE} {STORE} }}")),
        "writes_twice",
    ),
    Mutant(
        0,
        "shared words are read that nobody wrote",
        "uninitialised",
        "lavapipe",
        watched(
            STAGED,
            (
                "tile_x[token * STRIDE + 2u * quad + 1u] = PAIR(x.zw);",
                "if (inside) tile_x[token * STRIDE + 2u * quad + 1u] = PAIR(x.zw);",
            ),
        ),
        "reads_shared_memory_nobody_wrote",
    ),
    Mutant(
        4,
        "the barrier between the last read of a shared tile and its next overwrite is missing",
        "race",
        "lavapipe",
        watched(STAGED, ("        barrier();\n    }\n", "    }\n")),
        "missing_barrier_seen_by_the_checked_build",
    ),
)
