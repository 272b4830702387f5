"""TQ2_0: 256 elements in 66 bytes. Runs of 32 bytes of 2-bit codes, fp16 d last. value = d * (q - 1).

Element e is in byte 32 * (e // 128) + e % 32, at bit 2 * ((e % 128) // 32).
"""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves, raw
from warptile.formats._format import Format
from warptile.formats._ternary import ternary
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import F32, U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.scales import HalfScale


def split(blocks: U8) -> Fields:
    """qs[64] d[2]."""
    return Fields(expand(blocks[:, :64], 2, 32), {"d": halves(blocks[:, 64:])})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    return np.concatenate([collapse(fields.codes, 2, 32), raw(fields.scales["d"])], axis=1)


def encode(values: F32) -> U8:
    """Quantize f32[n, 256]."""
    digits, d = ternary(values, 256, "TQ2_0", reciprocal=True)
    return np.concatenate([collapse(digits, 2, 32), d], axis=1)


FORMAT = Format("TQ2_0", 35, 256, 66, Layout(BitPlanes((2,)), HalfScale(256), offset=1), split, join, encode)
