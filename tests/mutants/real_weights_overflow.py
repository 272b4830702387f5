"""Real weights gave NaN while tests on random ones passed: a decode that overflows where blocks are as large as a
trained model's. SmolLM2's weights reach 9; those of the random inputs do not reach 1, and the exact ones, which
do, are multiples of 1/4."""

from __future__ import annotations

from tests.fakes import FakeKernel, FakeRuntime, FakeTile
from tests.mutants.planting import Lab, Mutant, Spoken, spoken
from tests.support.models import smollm2
from warptile.contracts import Problem
from warptile.proof import prove
from warptile.proof.jobs import RealWeights, real_blocks

PROBLEM = Problem("Q4_1", n=192, k=576, m=8)


def of(lab: Lab, planted: bool, real: bool) -> Spoken:
    kernel, tile = FakeKernel(), FakeTile(fault="overflows_above_one" if planted else "none")
    weights = RealWeights(str(smollm2()), "blk.0.attn_k.weight", rows=16)
    blocks = real_blocks(weights, PROBLEM) if real else None
    return spoken(prove(FakeRuntime(kernel.programs()), kernel, tile, PROBLEM, blocks=blocks, cache=lab.cache))


MUTANTS = (
    Mutant(
        23,
        "the decode overflows from 1 on, with a model's own rows at hand",
        "finite",
        "made-up",
        lambda lab, planted: of(lab, planted, True),
        "real_weights_overflow",
    ),
    Mutant(
        23,
        "the decode overflows from 1 on, with no model at hand",
        "special",
        "made-up",
        lambda lab, planted: of(lab, planted, False),
        "large_weights_overflow",
    ),
)
