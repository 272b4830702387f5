"""Q2_K: 256 elements in 84 bytes. 16 bytes sc | mn << 4, 64 bytes of 2-bit codes in runs of 32, fp16 d, fp16 dmin.

value = d * sc * q - dmin * mn, 16 elements a scale.
"""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves, raw
from warptile.formats._format import Format
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.superblock_scales import NibbleScaleMinimum


def split(blocks: U8) -> Fields:
    """scales[16] qs[64] d[2] dmin[2]."""
    scales = {"d": halves(blocks[:, 80:82]), "dmin": halves(blocks[:, 82:]), "scmn": blocks[:, :16]}
    return Fields(expand(blocks[:, 16:80], 2, 32), scales)


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    s = fields.scales
    return np.concatenate([s["scmn"], collapse(fields.codes, 2, 32), raw(s["d"]), raw(s["dmin"])], axis=1)


FORMAT = Format("Q2_K", 10, 256, 84, Layout(BitPlanes((2,)), NibbleScaleMinimum()), split, join)
