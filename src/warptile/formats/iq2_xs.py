"""IQ2_XS: 256 elements in 74 bytes. fp16 d; for each 8 elements a u16: 9-bit grid index, 7-bit sign; a nibble of scale
for each 16. value = d / 8 * (2 sc + 1) * +-grid."""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves, raw
from warptile.formats._codebooks import IQ2
from warptile.formats._format import Format
from warptile.formats._grids import as_bytes, bytes_of, grid, parity_signs
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.small_scales import OddScale


def split(blocks: U8) -> Fields:
    """d[2] qs[64] scales[8]."""
    words = halves(blocks[:, 2:66])
    signs = parity_signs()[words >> np.uint16(9)]
    codes = grid("IQ2_XS").unfold(words & np.uint16(511)) | signs << np.uint8(2)
    sc = expand(blocks[:, 66:], 4, 1)
    return Fields(codes.reshape(len(blocks), 256), {"d": halves(blocks[:, :2]), "sc": sc})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    codes = fields.codes.reshape(len(fields.codes), 32, 8)
    signs = bytes_of(codes[..., :7] >> np.uint8(2)).astype("<u2")
    words = grid("IQ2_XS").fold(codes & np.uint8(3)) | signs << np.uint16(9)
    return np.concatenate([raw(fields.scales["d"]), as_bytes(words), collapse(fields.scales["sc"], 4, 1)], axis=1)


FORMAT = Format(
    "IQ2_XS", 17, 256, 74, Layout(BitPlanes((2, 1)), OddScale(16, 0.125), codebook=IQ2), split, join, permutes=False
)
