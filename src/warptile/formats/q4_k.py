"""Q4_K: 256 elements in 144 bytes. fp16 d, fp16 dmin, 8 + 8 six-bit scales and minimums, nibbles.

Runs of 32 nibble bytes hold 64 elements: low nibbles first. value = d * sc * q - dmin * mn, 32 elements a scale.
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
    """d[2] dmin[2] scales[12] qs[128]."""
    sc, mn = cut_scales(blocks[:, 4:16])
    scales = {"d": halves(blocks[:, :2]), "dmin": halves(blocks[:, 2:4]), "sc": sc, "mn": mn}
    return Fields(expand(blocks[:, 16:], 4, 32), scales)


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    s = fields.scales
    head = [raw(s["d"]), raw(s["dmin"]), join_scales(s["sc"], s["mn"])]
    return np.concatenate([*head, collapse(fields.codes, 4, 32)], axis=1)


FORMAT = Format("Q4_K", 12, 256, 144, Layout(BitPlanes((4,)), SixBitScaleMinimum()), split, join)
