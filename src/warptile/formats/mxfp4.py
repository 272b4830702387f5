"""MXFP4: 32 elements in 17 bytes. E8M0 exponent e, nibbles as Q4_0 (E2M1). value = 2^(e - 128) * codebook[q].

Source: OCP Microscaling Formats 1.0; the codebook holds doubled values, hence 2^(e - 128).
"""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand
from warptile.formats._codebooks import E2M1
from warptile.formats._format import Format
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.scales import ExponentScale


def split(blocks: U8) -> Fields:
    """e[1] qs[16]."""
    return Fields(expand(blocks[:, 1:], 4, 16), {"e": blocks[:, :1]})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    return np.concatenate([fields.scales["e"], collapse(fields.codes, 4, 16)], axis=1)


FORMAT = Format("MXFP4", 39, 32, 17, Layout(BitPlanes((4,)), ExponentScale(32), codebook=E2M1), split, join)
