"""Q5_0: 32 elements in 22 bytes. fp16 d, bit 4 of element e at bit e of a u32, nibbles as Q4_0.

value = d * (q - 16).
"""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves, raw
from warptile.formats._format import Format
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.scales import HalfScale


def split(blocks: U8) -> Fields:
    """d[2] qh[4] qs[16]."""
    codes = expand(blocks[:, 6:], 4, 16)
    codes |= expand(blocks[:, 2:6], 1, 1) << np.uint8(4)
    return Fields(codes, {"d": halves(blocks[:, :2])})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    high = collapse(fields.codes >> np.uint8(4), 1, 1)
    return np.concatenate([raw(fields.scales["d"]), high, collapse(fields.codes, 4, 16)], axis=1)


FORMAT = Format("Q5_0", 6, 32, 22, Layout(BitPlanes((4, 1)), HalfScale(32), offset=16), split, join)
