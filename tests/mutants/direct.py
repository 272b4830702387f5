"""Faults of a kernel without shared memory, on the software Vulkan device."""

from __future__ import annotations

from collections.abc import Callable

from tests.mutants.planting import Lab, Spoken, planted, prove_on, sound
from warptile import kernels
from warptile.contracts import Problem

TILE = "vulkan.mul_mm_direct:lanes=8,thread_n=4,thread_m=4"
PROBLEM = Problem("Q4_1", 192, 512, 24)


def changed(*changes: tuple[str, str], tile: str = TILE, problem: Problem = PROBLEM) -> Callable[[Lab, bool], Spoken]:
    """What the proof says of the kernel with pieces of its source replaced, or as it ships."""

    def run(lab: Lab, fault: bool) -> Spoken:
        kernel, parsed = kernels.parse_tile(tile)
        if not fault:
            return sound(lab, lab.device, kernel, parsed, problem)
        return prove_on(lab, lab.device, planted(kernel, *changes), parsed, problem)

    return run
