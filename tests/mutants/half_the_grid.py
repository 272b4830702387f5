"""Stale dispatch divisors: the grid of a tile twice as large does half the work, and "wins" twice over."""

from __future__ import annotations

import dataclasses

from tests.mutants.direct import PROBLEM, TILE
from tests.mutants.planting import Lab, Mutant, Spoken, launched_otherwise, prove_on, sound
from warptile import kernels
from warptile.contracts import Launch


def half(launch: Launch) -> Launch:
    return dataclasses.replace(launch, grid=(-(-launch.grid[0] // 2), *launch.grid[1:]))


def run(lab: Lab, planted: bool) -> Spoken:
    kernel, tile = kernels.parse_tile(TILE)
    if not planted:
        return sound(lab, lab.device, kernel, tile, PROBLEM)
    return prove_on(lab, lab.device, launched_otherwise(kernel, half), tile, PROBLEM)


MUTANT = Mutant(6, "half as many workgroups as the output needs", "written", "lavapipe", run)
