"""Q3_K: 256 elements in 110 bytes. 32 bytes of high bits, 64 bytes of 2-bit codes, 12 bytes of 6-bit scales, fp16 d.

Bit j of high byte i is bit 2 of element 32 * j + i. value = d * (sc - 32) * (q - 4), 16 elements a scale.
"""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves, raw
from warptile.formats._format import Format
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.superblock_scales import SixBitScale16


def split(blocks: U8) -> Fields:
    """hmask[32] qs[64] scales[12] d[2]. Scales: low nibbles as runs of 8 bytes, high bit pairs as runs of 4."""
    codes = expand(blocks[:, 32:96], 2, 32)
    codes |= expand(blocks[:, :32], 1, 32) << np.uint8(2)
    sc = expand(blocks[:, 96:104], 4, 8) | expand(blocks[:, 104:108], 2, 4) << np.uint8(4)
    return Fields(codes, {"d": halves(blocks[:, 108:]), "sc": sc})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    s = fields.scales
    high = collapse(fields.codes >> np.uint8(2), 1, 32)
    scales = [collapse(s["sc"], 4, 8), collapse(s["sc"] >> np.uint8(4), 2, 4)]
    return np.concatenate([high, collapse(fields.codes, 2, 32), *scales, raw(s["d"])], axis=1)


FORMAT = Format("Q3_K", 11, 256, 110, Layout(BitPlanes((2, 1)), SixBitScale16(), offset=4), split, join)
