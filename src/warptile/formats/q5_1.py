"""Q5_1: 32 elements in 24 bytes. fp16 d, fp16 m, bit 4 of element e at bit e of a u32, nibbles. value = d * q + m."""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves, raw
from warptile.formats._format import Format
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.scales import HalfScaleMinimum


def split(blocks: U8) -> Fields:
    """d[2] m[2] qh[4] qs[16]."""
    codes = expand(blocks[:, 8:], 4, 16)
    codes |= expand(blocks[:, 4:8], 1, 1) << np.uint8(4)
    return Fields(codes, {"d": halves(blocks[:, :2]), "m": halves(blocks[:, 2:4])})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    s = fields.scales
    high = collapse(fields.codes >> np.uint8(4), 1, 1)
    return np.concatenate([raw(s["d"]), raw(s["m"]), high, collapse(fields.codes, 4, 16)], axis=1)


FORMAT = Format("Q5_1", 7, 32, 24, Layout(BitPlanes((4, 1)), HalfScaleMinimum(32)), split, join)
