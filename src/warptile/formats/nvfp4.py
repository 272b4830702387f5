"""NVFP4: 64 elements in 36 bytes. Four unsigned E4M3 scales, then nibbles (E2M1): for each 16 elements eight bytes, low
nibbles first. value = scale / 2 * codebook[q]; the codebook holds doubled values."""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand
from warptile.formats._codebooks import E2M1
from warptile.formats._format import Format
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.small_scales import MiniFloatScale


def split(blocks: U8) -> Fields:
    """s[4] qs[32]."""
    return Fields(expand(blocks[:, 4:], 4, 8), {"s": blocks[:, :4]})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    return np.concatenate([fields.scales["s"], collapse(fields.codes, 4, 8)], axis=1)


FORMAT = Format("NVFP4", 40, 64, 36, Layout(BitPlanes((4,)), MiniFloatScale(), codebook=E2M1), split, join)
