"""IQ1_S: 256 elements in 50 bytes. fp16 d; for each 8 elements an 11-bit index (low byte, three bits of qh) into a grid
of -1, 0, 1; for each 32 a 3-bit scale and the sign of 1/8. value = d * (2 sc + 1) * (grid +- 1/8)."""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import halves, raw
from warptile.formats._codebooks import IQ1
from warptile.formats._format import Format
from warptile.formats._grids import as_bytes, fields_of, grid, join_fields
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.small_scales import OddScale

_HIGH = (0, 3, 6, 9)


def split(blocks: U8) -> Fields:
    """d[2] qs[32] qh[16]."""
    qh = halves(blocks[:, 34:])
    entries = blocks[:, 2:34] | fields_of(qh, _HIGH, 7) << np.uint16(8)
    minus = (qh >> np.uint16(15)).astype(np.uint8)
    codes = grid("IQ1_S").unfold(entries).reshape(len(blocks), 8, 32) | minus[..., None] << np.uint8(2)
    sc = (qh >> np.uint16(12) & np.uint16(7)).astype(np.uint8)
    return Fields(codes.reshape(len(blocks), 256), {"d": halves(blocks[:, :2]), "sc": sc})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    codes = fields.codes.reshape(len(fields.codes), 32, 8)
    entries = grid("IQ1_S").fold(codes & np.uint8(3))
    minus = (codes[:, ::4, 0] >> np.uint8(2)).astype("<u2") << np.uint16(15)
    qh = join_fields(entries >> np.uint16(8), _HIGH, "<u2") | fields.scales["sc"].astype("<u2") << np.uint16(12) | minus
    return np.concatenate([raw(fields.scales["d"]), entries.astype(np.uint8), as_bytes(qh)], axis=1)


FORMAT = Format(
    "IQ1_S", 19, 256, 50, Layout(BitPlanes((2, 1)), OddScale(32, 0.125), codebook=IQ1), split, join, permutes=False
)
