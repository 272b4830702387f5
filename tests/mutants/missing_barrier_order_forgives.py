"""The RDNA4 document's bug in the kernels that stage int8 words: where every warp happens to be in step, or runs to the
next barrier before another begins, an output may be right. A checked build sees it in one run, whatever the order; a
delayed build in the bytes of y."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import cast

from tests.kernels.test_mul_mm_coop_int8 import Emulated
from tests.kernels.test_mul_mm_coop_int8 import tile as one_warp
from tests.mutants.planting import Lab, Mutant, Spoken, Wrapped
from warptile import kernels
from warptile.contracts import Instrument, Kernel, Problem, Source, Tile
from warptile.proof.instrumented import instrumented

MMQ, MMQ_TILE = kernels.parse_tile(
    "vulkan.mul_mmq:block_size=32,tile_n=32,tile_m=16,tile_k=32,warp_n=16,warp_m=8,warp_iterations_n=1,thread_n=4,"
    "thread_m=2,thread_k=1,subgroup=8,bk_step=2,dot=int_dot,staged=packed,scales=fp16,loader=chunk"
)
MMQ_PROBLEM = Problem("Q4_K", 33, 256, 17)
MMQ_BARRIER = (r"        barrier\(\);\n    \}\n\n(    \[\[unroll\]\] for \(uint t = 0u; t < ROWS_M)", r"    }\n\n\1")

# On a matrix unit made of shared memory: this device has none of its own.
COOP = cast(Kernel, Emulated(""))
COOP_TILE = one_warp("matrices_m=1,k_chunk=64,scales=broadcast,x_block=64")
COOP_PROBLEM = Problem("Q8_0", 16, 128, 16)
COOP_BARRIER = (r"SYNC; +// every warp has read what the step before staged\n", "")


def seen_by(
    instrument: Instrument, kernel: Kernel, tile: Tile, problem: Problem, barrier: tuple[str, str]
) -> Callable[[Lab, bool], Spoken]:
    """What one instrument says of a kernel without a barrier, or as it ships."""

    def without(source: Source) -> Source:
        text, count = re.subn(*barrier, source.text)
        assert count == 1, "the planted fault no longer fits the source"
        return dataclasses.replace(source, text=text)

    def run(lab: Lab, fault: bool) -> Spoken:
        own = cast(Kernel, Wrapped(kernel, source=without)) if fault else kernel
        found = instrumented(lab.device, own, tile, problem, cache=lab.cache, instruments=(instrument,))
        return Spoken(found.check, found.detail) if found else Spoken("")

    return run


def _mutant(name: str, check: str, run: Callable[[Lab, bool], Spoken]) -> Mutant:
    return Mutant(4, f"{name}: a staged tile is overwritten while others read it", check, "lavapipe", run, name)


MUTANTS = (
    _mutant("mul_mmq_raced", "race", seen_by("checked", MMQ, MMQ_TILE, MMQ_PROBLEM, MMQ_BARRIER)),
    _mutant("mul_mmq_in_other_orders", "schedule", seen_by("delayed", MMQ, MMQ_TILE, MMQ_PROBLEM, MMQ_BARRIER)),
    _mutant("mul_mm_coop_raced", "race", seen_by("checked", COOP, COOP_TILE, COOP_PROBLEM, COOP_BARRIER)),
)
