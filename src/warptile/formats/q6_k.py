"""Q6_K: 256 elements in 210 bytes. ql 128, qh 64, int8 scales 16, fp16 d.

Runs of 64 ql bytes hold the low nibbles of 128 elements, runs of 32 qh bytes their bits 4-5.
value = d * sc * (q - 32), 16 elements a scale.
"""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves, raw
from warptile.formats._format import Format
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.superblock_scales import ByteScale


def split(blocks: U8) -> Fields:
    """ql[128] qh[64] scales[16] d[2]."""
    codes = expand(blocks[:, :128], 4, 64)
    codes |= expand(blocks[:, 128:192], 2, 32) << np.uint8(4)
    return Fields(codes, {"d": halves(blocks[:, 208:]), "sc": blocks[:, 192:208]})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    s = fields.scales
    high = collapse(fields.codes >> np.uint8(4), 2, 32)
    return np.concatenate([collapse(fields.codes, 4, 64), high, s["sc"], raw(s["d"])], axis=1)


FORMAT = Format("Q6_K", 14, 256, 210, Layout(BitPlanes((4, 2)), ByteScale(), offset=32), split, join)
