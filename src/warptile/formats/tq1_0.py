"""TQ1_0: 256 elements in 54 bytes. qs[48], qh[4] base-3 bytes, fp16 d last. value = d * (digit - 1).

Elements 0-159 are five digits of 32 bytes, 160-239 five of 16, 240-255 four of 4.
"""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import halves, raw
from warptile.formats._format import Format
from warptile.formats._ternary import ternary
from warptile.layouts.fields import F32, U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.scales import HalfScale
from warptile.layouts.trits import TritPlane

_TRITS = TritPlane(((32, 5), (16, 5), (4, 4)), 52)


def split(blocks: U8) -> Fields:
    """Base-3 bytes[52] d[2]."""
    return Fields(blocks[:, :52], {"d": halves(blocks[:, 52:])})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    return np.concatenate([fields.codes, raw(fields.scales["d"])], axis=1)


def encode(values: F32) -> U8:
    """Quantize f32[n, 256]."""
    digits, d = ternary(values, 256, "TQ1_0", reciprocal=True)
    return np.concatenate([_TRITS.from_digits(digits), d], axis=1)


FORMAT = Format("TQ1_0", 34, 256, 54, Layout(_TRITS, HalfScale(256), offset=1), split, join, encode)
