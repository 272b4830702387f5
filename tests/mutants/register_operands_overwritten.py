"""ptxas before 13.3 may overwrite registers that a running wgmma still reads: silent wrong values, now and then; seen
on an H200 as Inf and NaN at a record rate."""

from __future__ import annotations

from types import SimpleNamespace

from tests.fakes import Call, FakeKernel, FakeRuntime, FakeTile
from tests.mutants.made_up import PROBLEM
from tests.mutants.planting import Lab, Mutant, Spoken, spoken
from warptile.proof import prove
from warptile.runtimes.triton.hazards import hazards_of

REGISTERS = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}, {%r1, %r2, %r3, %r4}, %rd5, p, 1, 1, 0;"


def flagged(lab: Lab, planted: bool) -> Spoken:
    """The policy: such code from such an assembler is named, so that it is run many times and said in the verdict."""
    named = hazards_of([SimpleNamespace(asm={"ptx": REGISTERS})], "12.8.93" if planted else "13.3.33")
    return Spoken("hazard" if named else "", "; ".join(named))


def wavering(lab: Lab, planted: bool) -> Spoken:
    """One of 30 runs is wrong: the two runs of every shape do not see it."""
    kernel = FakeKernel()
    runs: list[Call] = []

    def program(call: Call) -> None:
        kernel.run(call)
        again = [c for c in runs if c.launch is call.launch]
        runs.append(call)
        if planted and len(again) == 27:
            m, rows, *_ = call.launch.scalars
            call.payload(2, "fp32").reshape(-1)[m * rows // 2] += 1

    runtime = FakeRuntime({"matmul": program})
    runtime.hazards = lambda binary: ("wgmma with register operands, assembled by ptxas 12.8",)  # type: ignore[attr-defined]
    return spoken(prove(runtime, kernel, FakeTile(), PROBLEM, cache=lab.cache))


MUTANTS = (
    Mutant(16, "wgmma with register operands, assembled by ptxas 12.8", "hazard", "paper", flagged, "old_assembler"),
    Mutant(16, "one run of 30 differs", "hazard", "made-up", wavering, "register_operands_overwritten"),
)
