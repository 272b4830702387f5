"""PTQ1_0: 128 elements in 28 bytes. qs[24], qh[2] base-3 bytes, fp16 d last. value = d * (digit - 1).

Elements 0-79 are five digits of 16 bytes, 80-119 five of 8, 120-127 four of 2.
"""

from __future__ import annotations

import numpy as np

from warptile.formats._format import Format
from warptile.formats._ternary import ternary
from warptile.layouts.fields import F32, U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.trits import HalfInTrits, TritPlane

_TRITS = TritPlane(((16, 5), (8, 5), (2, 4)), 28)


def split(blocks: U8) -> Fields:
    """The plane keeps the block's bytes, d among them."""
    return Fields(blocks)


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    return fields.codes


def encode(values: F32) -> U8:
    """Quantize f32[n, 128]."""
    digits, d = ternary(values, 128, "PTQ1_0")
    return np.concatenate([_TRITS.from_digits(digits), d], axis=1)


FORMAT = Format("PTQ1_0", 143, 128, 28, Layout(_TRITS, HalfInTrits(128, 28), offset=1), split, join, encode)
