"""Q4_1: 32 elements in 20 bytes. fp16 d, fp16 m, nibbles as Q4_0. value = d * q + m."""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves, raw
from warptile.formats._format import Format
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.scales import HalfScaleMinimum


def split(blocks: U8) -> Fields:
    """d[2] m[2] qs[16]."""
    return Fields(expand(blocks[:, 4:], 4, 16), {"d": halves(blocks[:, :2]), "m": halves(blocks[:, 2:4])})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    s = fields.scales
    return np.concatenate([raw(s["d"]), raw(s["m"]), collapse(fields.codes, 4, 16)], axis=1)


FORMAT = Format("Q4_1", 3, 32, 20, Layout(BitPlanes((4,)), HalfScaleMinimum(32)), split, join)
