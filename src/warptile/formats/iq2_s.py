"""IQ2_S: 256 elements in 82 bytes. fp16 d; for each 8 elements a 10-bit grid index (low byte, two bits of qh) and a
byte of signs; a nibble of scale for each 16. value = d / 8 * (2 sc + 1) * +-grid."""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves, raw
from warptile.formats._codebooks import IQ2
from warptile.formats._format import Format
from warptile.formats._grids import bits_of, bytes_of, grid
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.small_scales import OddScale


def split(blocks: U8) -> Fields:
    """d[2] qs[32] signs[32] qh[8] scales[8]."""
    high = expand(blocks[:, 66:74], 2, 1).astype(np.uint16) << np.uint16(8)
    codes = grid("IQ2_S").unfold(blocks[:, 2:34] | high) | bits_of(blocks[:, 34:66]) << np.uint8(2)
    sc = expand(blocks[:, 74:], 4, 1)
    return Fields(codes.reshape(len(blocks), 256), {"d": halves(blocks[:, :2]), "sc": sc})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    codes = fields.codes.reshape(len(fields.codes), 32, 8)
    entries = grid("IQ2_S").fold(codes & np.uint8(3))
    high = collapse((entries >> np.uint16(8)).astype(np.uint8), 2, 1)
    signs = bytes_of(codes >> np.uint8(2))
    parts = [raw(fields.scales["d"]), entries.astype(np.uint8), signs, high, collapse(fields.scales["sc"], 4, 1)]
    return np.concatenate(parts, axis=1)


FORMAT = Format(
    "IQ2_S", 22, 256, 82, Layout(BitPlanes((2, 1)), OddScale(16, 0.125), codebook=IQ2), split, join, permutes=False
)
