"""Q1_0: 128 elements in 18 bytes. fp16 d, then bit e % 8 of byte e // 8. value = +d where set, -d where clear."""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves, raw
from warptile.formats._codebooks import SIGN
from warptile.formats._format import Format
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.scales import HalfScale


def split(blocks: U8) -> Fields:
    """d[2] bits[16]."""
    return Fields(expand(blocks[:, 2:], 1, 1), {"d": halves(blocks[:, :2])})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    return np.concatenate([raw(fields.scales["d"]), collapse(fields.codes, 1, 1)], axis=1)


FORMAT = Format("Q1_0", 41, 128, 18, Layout(BitPlanes((1,)), HalfScale(128), codebook=SIGN), split, join)
