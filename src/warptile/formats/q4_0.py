"""Q4_0: 32 elements in 18 bytes. fp16 d, 16 nibble bytes (low nibble e < 16, high e >= 16). value = d * (q - 8)."""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves, raw
from warptile.formats._format import Format
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.scales import HalfScale


def split(blocks: U8) -> Fields:
    """d[2] qs[16]."""
    return Fields(expand(blocks[:, 2:], 4, 16), {"d": halves(blocks[:, :2])})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    return np.concatenate([raw(fields.scales["d"]), collapse(fields.codes, 4, 16)], axis=1)


FORMAT = Format("Q4_0", 2, 32, 18, Layout(BitPlanes((4,)), HalfScale(32), offset=8), split, join)
