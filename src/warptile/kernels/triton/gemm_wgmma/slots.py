"""Instructions a weight in the loop of `triton.gemm_wgmma`, by what its layout is made of.

Counted in machine code (Triton 3.6, sm_90, 256 tokens, every format; `benchmarks/instructions.py`), the sum below is
within 7 % of each count, scaled so that Q4_K has what its price was fitted with; but for codebooks, whose look-ups wait
for each other: they have what an H200 took.
"""

from __future__ import annotations

from warptile.contracts import Problem
from warptile.kernels.triton.common import arranged
from warptile.layouts.triton import Arrangement
from warptile.layouts.trits import TritPlane

BIT_PLANE = 2.4
"""One plane of codes, scales of 32 weights, and everything in the loop that is no decoding."""
SECOND_PLANE = 0.8
TRITS = 1.0
CODEBOOK = 19.0
"""A table of 16 values, looked up pair by pair, in 4.7 instructions."""
HALVED_GROUPS = 0.6
"""Scales of 16 weights."""
TWO_LEVELS = 0.2
"""Scales of scales."""
BF16, DIRECT_BF16 = 1.5, 0.15
"""Weights made in fp16 are converted; scales are, where weights are made in bf16."""
DIRECT_TRITS, DIRECT_PLANES = 0.5, 0.5
"""Codes are moved to the low bits first."""


def slots_a_weight(problem: Problem, direct: bool) -> float:
    """Instructions of a consumer's loop over the weights a lane decodes in it: a loop that holds nothing back, whose
    warps do not meet. direct: bf16 weights are made in bf16."""
    own = arranged(problem)
    slots = _decoding(own)
    if problem.x_dtype == "bf16":
        slots += DIRECT_BF16 if direct else BF16
    if direct and isinstance(own.layout.codes, TritPlane):
        slots += DIRECT_TRITS
    elif direct and len(own.code_planes) > 1:
        slots += DIRECT_PLANES
    return slots


def _decoding(own: Arrangement) -> float:
    layout = own.layout
    slots = BIT_PLANE
    if isinstance(layout.codes, TritPlane):
        slots += TRITS
    elif len(own.code_planes) > 1:
        slots += SECOND_PLANE
    if not layout.affine:
        slots += CODEBOOK
    if layout.groups_per_chunk > 1:
        slots += HALVED_GROUPS
    if layout.scales.block > layout.scales.group:
        slots += TWO_LEVELS
    return slots
