"""A cache gave back what was tuned for another driver, compiler, kernel, layout or gate, or another card's file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tests.mutants.planting import Lab, Mutant, Spoken
from warptile.contracts import Identity, Problem, UnusableInput
from warptile.proof import PROOF_VERSION
from warptile.tables import Point, Table, Validity, table_path

HERE = Identity("NVIDIA H200", "580.95", "triton 3.6", "cuda")
PROBLEM = Problem("Q4_K", 4096, 4096, 16, "fp16", "fp16")
LAYOUT = "q4_k"
VALID = Validity(HERE.driver, HERE.compiler, "a" * 64, PROOF_VERSION)
POINT = Point(
    16, "triton.gemm:tile_n=16", "triton.gemm:tile_n=8", 1e-5, 2e-5, 2.0, 1.9, 2.1, 0.01, "accept", "", VALID, 40
)


def served(lab: Lab, point: Point = POINT, put_as: Identity = HERE, layout: str = LAYOUT) -> Spoken:
    """What the table of `HERE` says of the problem, after it was written as the fault has it and read from its file."""
    folder = lab.folder / put_as.device
    made = Table.load(folder, put_as)
    made.put(PROBLEM, layout, point)
    path = made.save()
    path.rename(table_path(folder, HERE))
    try:
        found = Table.load(folder, HERE).lookup(PROBLEM, LAYOUT, PROOF_VERSION, lambda tile: "a" * 64)
    except UnusableInput as error:
        return Spoken("device", str(error))
    if found is None:
        return Spoken("key", "nothing was measured for this key")
    return Spoken("" if found.status == "tuned" else found.status, found.why)


def stale(**changes: object) -> Callable[[Lab, bool], Spoken]:
    def run(lab: Lab, planted: bool) -> Spoken:
        valid = dataclasses.replace(VALID, **changes) if planted else VALID  # type: ignore[arg-type]
        return served(lab, dataclasses.replace(POINT, validity=valid))

    return run


SIBLING = dataclasses.replace(HERE, device="NVIDIA H20")
MUTANTS = (
    Mutant(11, "a winner of another driver", "stale", "paper", stale(driver="550.54"), "another_driver"),
    Mutant(11, "a winner of another compiler", "stale", "paper", stale(compiler="triton 3.5"), "another_compiler"),
    Mutant(11, "a winner whose kernel has changed since", "stale", "paper", stale(artefact="b" * 64), "another_kernel"),
    Mutant(
        11, "a winner that an older gate let through", "stale", "paper", stale(proof=PROOF_VERSION - 1), "older_gate"
    ),
    Mutant(
        11,
        "a winner on weights packed another way",
        "key",
        "paper",
        lambda lab, planted: served(lab, layout="q4_k.rows" if planted else LAYOUT),
        "another_layout",
    ),
    Mutant(
        24,
        "the table of a sibling card under this card's name",
        "device",
        "paper",
        lambda lab, planted: served(lab, put_as=SIBLING if planted else HERE),
        "table_of_a_sibling_card",
    ),
)
