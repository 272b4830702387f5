"""What decoders in fp16 pairs hand to the assembler, on numpy: a wrong bit here is a wrong weight on a card alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.ptx import plain, run

pytest.importorskip("triton")

from warptile.contracts import Problem
from warptile.kernels.triton.common import parameters
from warptile.layouts.triton import half_decode


def test_byte_scales_are_made_in_order_and_rounded_once() -> None:
    """Each of a word's four signed bytes times its superblock's number, and that times minus 32 codes: what Q6_K adds
    is its scale's shift exactly. Scales of zero take even the largest number to zero."""
    rng = np.random.default_rng(0)
    scales = rng.integers(-128, 128, (32, 4)).astype(np.int8)
    scales[0], scales[1], scales[2] = 0, -128, 127
    times = np.float16(rng.uniform(2**6, 2**7, 32))
    times[0], times[3] = np.float16(65504), np.float16(-1.5)
    both = np.repeat(times[:, None], 2, axis=1).view(np.uint32).reshape(32)
    offset = plain(half_decode.minus_offset)(parameters(Problem("Q6_K", 64, 256, 1)))
    given = {8: scales.view("<u4").reshape(32), 9: both, 10: np.full(32, offset & 0xFFFFFFFF, np.uint32)}
    found = run(plain(half_decode.byte_factors_text)(), given)
    for group in range(4):
        want = (scales[:, group].astype(np.float64) * times.astype(np.float64)).astype(np.float16)
        added = (want.astype(np.float64) * -32 * 2.0**-24).astype(np.float16)
        for at, expected in ((group, want), (group + 4, added)):
            halves = found[at].view(np.float16).reshape(32, 2)
            assert (halves == expected[:, None]).all(), (group, at)
