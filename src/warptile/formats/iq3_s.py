"""IQ3_S: 256 elements in 110 bytes. fp16 d; for each 4 elements a 9-bit grid index (low byte, a bit of qh); a byte of
signs for each 8; a nibble of scale for each 32. value = d * (2 sc + 1) * +-grid."""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves, raw
from warptile.formats._codebooks import IQ3_S
from warptile.formats._format import Format
from warptile.formats._grids import bits_of, bytes_of, grid
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.small_scales import OddScale


def split(blocks: U8) -> Fields:
    """d[2] qs[64] qh[8] signs[32] scales[4]."""
    high = bits_of(blocks[:, 66:74]).reshape(len(blocks), 64).astype(np.uint16) << np.uint16(8)
    signs = bits_of(blocks[:, 74:106]).reshape(len(blocks), 64, 4)
    codes = grid("IQ3_S").unfold(blocks[:, 2:66] | high) | signs << np.uint8(3)
    sc = expand(blocks[:, 106:], 4, 1)
    return Fields(codes.reshape(len(blocks), 256), {"d": halves(blocks[:, :2]), "sc": sc})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    codes = fields.codes.reshape(len(fields.codes), 64, 4)
    entries = grid("IQ3_S").fold(codes & np.uint8(7))
    high = bytes_of((entries >> np.uint16(8)).astype(np.uint8).reshape(len(codes), 8, 8))
    signs = bytes_of(codes.reshape(len(codes), 32, 8) >> np.uint8(3))
    parts = [raw(fields.scales["d"]), entries.astype(np.uint8), high, signs, collapse(fields.scales["sc"], 4, 1)]
    return np.concatenate(parts, axis=1)


FORMAT = Format(
    "IQ3_S", 21, 256, 110, Layout(BitPlanes((4,)), OddScale(32, 1.0), codebook=IQ3_S), split, join, permutes=False
)
