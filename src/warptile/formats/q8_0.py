"""Q8_0: 32 elements in 34 bytes. fp16 d, int8 q. value = d * q; the code is q + 128."""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import halves, raw
from warptile.formats._format import Format
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.scales import HalfScale

_SIGN = np.uint8(128)


def split(blocks: U8) -> Fields:
    """d[2] qs[32]; two's complement with its sign bit flipped is q + 128."""
    return Fields(blocks[:, 2:] ^ _SIGN, {"d": halves(blocks[:, :2])})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    return np.concatenate([raw(fields.scales["d"]), fields.codes ^ _SIGN], axis=1)


FORMAT = Format("Q8_0", 8, 32, 34, Layout(BitPlanes((8,)), HalfScale(32), offset=128), split, join)
