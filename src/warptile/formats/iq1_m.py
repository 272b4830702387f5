"""IQ1_M: 256 elements in 56 bytes. For each 8 elements an 11-bit index (low byte, three bits of qh) into a grid of -1,
0, 1, and the sign of 1/8; a 3-bit scale for each 16; d in the top nibbles of the four scale words, lowest first.
value = d * (2 sc + 1) * (grid +- 1/8)."""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves
from warptile.formats._codebooks import IQ1
from warptile.formats._format import Format
from warptile.formats._grids import as_bytes, fields_of, grid, join_fields
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.small_scales import OddScale

_SCALES = (0, 3, 6, 9)
_D = (0, 4, 8, 12)


def split(blocks: U8) -> Fields:
    """qs[32] qh[16] scales[8]."""
    qh = expand(blocks[:, 32:48], 4, 1)
    entries = blocks[:, :32] | (qh & np.uint8(7)).astype(np.uint16) << np.uint16(8)
    codes = grid("IQ1_M").unfold(entries) | (qh >> np.uint8(3) << np.uint8(2))[..., None]
    words = halves(blocks[:, 48:])
    d = join_fields(words >> np.uint16(12), _D, "<u2")
    sc = fields_of(words, _SCALES, 7).astype(np.uint8)
    return Fields(codes.reshape(len(blocks), 256), {"d": d, "sc": sc})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    codes = fields.codes.reshape(len(fields.codes), 32, 8)
    entries = grid("IQ1_M").fold(codes & np.uint8(3))
    qh = (entries >> np.uint16(8)).astype(np.uint8) | codes[..., 0] >> np.uint8(2) << np.uint8(3)
    d = fields_of(fields.scales["d"].astype("<u2"), _D, 15)
    words = join_fields(fields.scales["sc"] & np.uint8(7), _SCALES, "<u2") | d << np.uint16(12)
    return np.concatenate([entries.astype(np.uint8), collapse(qh, 4, 1), as_bytes(words)], axis=1)


FORMAT = Format(
    "IQ1_M", 29, 256, 56, Layout(BitPlanes((2, 1)), OddScale(16, 0.125), codebook=IQ1), split, join, permutes=False
)
