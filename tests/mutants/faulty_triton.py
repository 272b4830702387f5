"""Faults of a Triton kernel: its device code with pieces replaced, as a module of its own, for interpreter and card."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

from tests.mutants.planting import Lab, Spoken, planted, prove_on, sound
from warptile import kernels
from warptile.contracts import Kernel, Problem

MODULE = "warptile.kernels.triton.gemv.device"
TILE = "triton.gemv:tile_n=8,tile_m=2,steps=2,warps=1,decode=half"
PROBLEM = Problem("Q8_0", 20, 160, 3, "fp16", "fp16")

FAULTS: dict[str, tuple[str, tuple[str, str]]] = {
    "k_tail_unmasked": ("finite", ("(token[:, None, None, None, None] < m) & (step < steps)", "step >= 0")),
    "rows_unmasked": ("guards", ("mask=(token[:, None] < m) & (out[None, :] < rows)", "mask=out[None, :] < rows")),
    "other_id": ("launch", ("tl.full([], BUILD_ID, tl.uint32)", "tl.full([], BUILD_ID ^ 1, tl.uint32)")),
    "one_row_unwritten": ("written", ("mask=(token[:, None] < m)", "mask=(token[:, None] + 1 < m)")),
    "sum_of_half": ("bound", ("total = tl.sum(tl.sum(total, 3), 1)", "total = tl.sum(tl.sum(total, 3), 1) * 0.5")),
}
"""By name: the check that must speak, and the piece of the device code with what stands in its place."""


def faulty(folder: Path, fault: str) -> Kernel:
    """`triton.gemv` with a fault, its device code written into `folder`."""
    before, after = FAULTS[fault][1]
    own = importlib.import_module(MODULE)
    assert own.__file__ is not None
    text = Path(own.__file__).read_text("utf-8")
    assert before in text, f"the planted fault {fault} no longer fits the device code"
    name = f"gemv_{fault}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(text.replace(before, after), "utf-8")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return planted(kernels.by_name("triton.gemv"), (f"{MODULE}:gemv", f"{name}:gemv"))


def interpreted(fault: str) -> Callable[[Lab, bool], Spoken]:
    """What the proof says of it in Triton's interpreter."""

    def run(lab: Lab, planted: bool) -> Spoken:
        kernel, tile = kernels.parse_tile(TILE)
        if not planted:
            return sound(lab, lab.interpreter, kernel, tile, PROBLEM)
        return prove_on(lab, lab.interpreter, faulty(lab.folder, fault), tile, PROBLEM)

    return run
