"""IQ4_XS: 256 elements in 136 bytes. fp16 d, eight 6-bit scales (2 + 4 bytes), nibbles in runs of 16 bytes.

value = d * (sc - 32) * codebook[q], 32 elements a scale.
"""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves, raw
from warptile.formats._codebooks import IQ4
from warptile.formats._format import Format
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.superblock_scales import SixBitScale32


def split(blocks: U8) -> Fields:
    """d[2] scales_h[2] scales_l[4] qs[128]."""
    sc = expand(blocks[:, 4:8], 4, 1) | expand(blocks[:, 2:4], 2, 1) << np.uint8(4)
    return Fields(expand(blocks[:, 8:], 4, 16), {"d": halves(blocks[:, :2]), "sc": sc})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    s = fields.scales
    scales = [collapse(s["sc"] >> np.uint8(4), 2, 1), collapse(s["sc"], 4, 1)]
    return np.concatenate([raw(s["d"]), *scales, collapse(fields.codes, 4, 16)], axis=1)


FORMAT = Format("IQ4_XS", 23, 256, 136, Layout(BitPlanes((4,)), SixBitScale32(), codebook=IQ4), split, join)
