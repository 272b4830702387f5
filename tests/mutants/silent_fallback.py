"""A shape that fails a variant's precondition silently runs the general kernel: "green" proves nothing of the
variant."""

from __future__ import annotations

import dataclasses
from typing import cast

from tests.mutants.direct import PROBLEM, TILE
from tests.mutants.planting import Lab, Mutant, Spoken, launched_otherwise, prove_on, sound
from warptile import kernels
from warptile.contracts import Kernel, Launch

GENERAL = "vulkan.mul_mm_direct:lanes=8,thread_n=1,thread_m=1"


def run(lab: Lab, planted: bool) -> Spoken:
    kernel, tile = kernels.parse_tile(TILE)
    if not planted:
        return sound(lab, lab.device, kernel, tile, PROBLEM)
    _, general = kernels.parse_tile(GENERAL)
    limits = lab.device.limits()
    other = lab.device.compile(kernel.source(general, PROBLEM, limits))

    def fallback(launch: Launch) -> Launch:
        m, rows = launch.scalars[:2]
        if m % 4 == 0 and rows % 32 == 0:
            return launch
        return dataclasses.replace(launch, binary=other, grid=(-(-rows // 8), m, 1))

    return prove_on(lab, lab.device, cast(Kernel, launched_otherwise(kernel, fallback)), tile, PROBLEM)


MUTANT = Mutant(1, "ragged shapes silently run the general kernel", "launch", "lavapipe", run)
