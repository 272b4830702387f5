"""Q5_K: 256 elements in 176 bytes. As Q4_K, with 32 bytes of high bits before the nibbles: bit j of byte i is bit 4 of
element 32 * j + i. value = d * sc * q - dmin * mn.
"""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves, raw
from warptile.formats._format import Format
from warptile.formats._k_scales import cut_scales, join_scales
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.superblock_scales import SixBitScaleMinimum


def split(blocks: U8) -> Fields:
    """d[2] dmin[2] scales[12] qh[32] qs[128]."""
    sc, mn = cut_scales(blocks[:, 4:16])
    codes = expand(blocks[:, 48:], 4, 32)
    codes |= expand(blocks[:, 16:48], 1, 32) << np.uint8(4)
    return Fields(codes, {"d": halves(blocks[:, :2]), "dmin": halves(blocks[:, 2:4]), "sc": sc, "mn": mn})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    s = fields.scales
    head = [raw(s["d"]), raw(s["dmin"]), join_scales(s["sc"], s["mn"])]
    high = collapse(fields.codes >> np.uint8(4), 1, 32)
    return np.concatenate([*head, high, collapse(fields.codes, 4, 32)], axis=1)


FORMAT = Format("Q5_K", 13, 256, 176, Layout(BitPlanes((4, 1)), SixBitScaleMinimum()), split, join)
