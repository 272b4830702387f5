"""An autotuner's candidates share one output: a candidate that writes nothing shows the result of the one before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fakes import FakeBuffer, FakeKernel, FakeRuntime, FakeTile
from tests.mutants.made_up import PROBLEM
from tests.mutants.planting import Lab, Mutant, Spoken, spoken
from warptile.proof import prove


class Sharing(FakeRuntime):
    """A freed buffer is handed out again as it is, and an output is not filled again once one of its size was."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.pool: dict[tuple[int, bool], list[FakeBuffer]] = {}
        self.recycled: set[int] = set()

    def guarded_buffer(self, nbytes: int, at_end: bool = False) -> FakeBuffer:
        pooled = self.pool.setdefault((nbytes, at_end), [])
        if not pooled:
            return super().guarded_buffer(nbytes, at_end)
        self.live += 1
        found = pooled.pop()
        self.recycled.add(id(found))
        found.freed[0] = False
        return found

    def write(self, buffer: FakeBuffer, data: np.ndarray) -> None:
        flat = np.ascontiguousarray(data).reshape(-1)
        if id(buffer) not in self.recycled or (flat != flat[0]).any():
            super().write(buffer, data)

    def free(self, buffers: Sequence[FakeBuffer]) -> None:
        super().free(buffers)
        for buffer in buffers:
            at_end = buffer.offset + buffer.nbytes + 3 >= len(buffer.memory)
            self.pool.setdefault((buffer.nbytes, at_end), []).append(buffer)


def run(lab: Lab, planted: bool) -> Spoken:
    kernel = FakeKernel()
    runtime = (Sharing if planted else FakeRuntime)(kernel.programs())
    return spoken(prove(runtime, kernel, FakeTile(), PROBLEM, cache=lab.cache))


MUTANT = Mutant(9, "a candidate's output still holds the result of the one before", "poisoned", "made-up", run)
