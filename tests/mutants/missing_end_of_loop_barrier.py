"""The RDNA4 document's bug: no barrier between the last read of a shared tile and the next write over it. A warp that
is ahead overwrites what another still reads. The software device runs warps one after another from barrier to
barrier, so the first is always ahead there."""

from __future__ import annotations

from tests.mutants.planting import Lab, Mutant, Spoken, planted, prove_on, sound
from warptile import kernels
from warptile.contracts import Problem

TILE = "vulkan.mul_mm:32,32,32,32,16,16,1,2,2,1,8"
PROBLEM = Problem("Q4_0", 64, 256, 33)


def run(lab: Lab, fault: bool) -> Spoken:
    kernel, tile = kernels.parse_tile(TILE)
    if not fault:
        return sound(lab, lab.device, kernel, tile, PROBLEM)
    mutant = planted(kernel, ("        barrier();\n    }\n", "    }\n"))
    return prove_on(lab, lab.device, mutant, tile, PROBLEM)


MUTANT = Mutant(4, "a shared tile is overwritten while other warps still read it", "nmse", "lavapipe", run)
