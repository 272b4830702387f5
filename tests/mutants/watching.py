"""Faults that no output shows, looked for by instrumented builds on the software Vulkan device."""

from __future__ import annotations

from collections.abc import Callable

from tests.mutants.planting import Lab, Spoken, planted
from warptile import kernels
from warptile.contracts import Problem
from warptile.proof.instrumented import instrumented

DIRECT = "vulkan.mul_mm_direct:lanes=8,thread_n=4,thread_m=4"
STAGED = "vulkan.mul_mm:32,32,32,32,16,16,1,2,2,1,8"
PROBLEM = Problem("Q4_0", 64, 64, 5)


def watched(tile: str, *changes: tuple[str, str], problem: Problem = PROBLEM) -> Callable[[Lab, bool], Spoken]:
    """What instrumented builds of a changed kernel say, as the level "full" asks them."""

    def run(lab: Lab, fault: bool) -> Spoken:
        kernel, parsed = kernels.parse_tile(tile)

        def ask(mutant: bool) -> Spoken:
            own = planted(kernel, *changes) if mutant else kernel
            found = instrumented(lab.device, own, parsed, problem, "full", cache=lab.cache)
            return Spoken(found.check, found.detail) if found else Spoken("")

        return ask(True) if fault else lab.once(("instrumented", tile, problem), lambda: ask(False))

    return run
