"""IQ2_XXS: 256 elements in 66 bytes. fp16 d; for each 32 elements four grid indices and a word: four 7-bit signs and
the scale in its top 4 bits. value = d / 8 * (2 sc + 1) * +-grid."""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import halves, raw
from warptile.formats._codebooks import IQ2
from warptile.formats._format import Format
from warptile.formats._grids import as_bytes, bytes_of, fields_of, grid, join_fields, parity_signs
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.small_scales import OddScale

_SIGNS = (0, 7, 14, 21)


def split(blocks: U8) -> Fields:
    """d[2], 8 times (qs[4], word[4])."""
    words = np.ascontiguousarray(blocks[:, 2:]).view("<u4").reshape(len(blocks), 8, 2)
    entries = np.ascontiguousarray(words[..., 0]).view(np.uint8)
    signs = parity_signs()[fields_of(words[..., 1], _SIGNS, 127)]
    codes = grid("IQ2_XXS").unfold(entries) | signs << np.uint8(2)
    sc = (words[..., 1] >> np.uint32(28)).astype(np.uint8)
    return Fields(codes.reshape(len(blocks), 256), {"d": halves(blocks[:, :2]), "sc": sc})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    codes = fields.codes.reshape(len(fields.codes), 32, 8)
    entries = grid("IQ2_XXS").fold(codes & np.uint8(3)).astype(np.uint8)
    signs = join_fields(bytes_of(codes[..., :7] >> np.uint8(2)), _SIGNS, "<u4")
    high = signs | fields.scales["sc"].astype("<u4") << np.uint32(28)
    words = np.stack([np.ascontiguousarray(entries).view("<u4"), high], axis=-1)
    return np.concatenate([raw(fields.scales["d"]), as_bytes(words)], axis=1)


FORMAT = Format(
    "IQ2_XXS", 16, 256, 66, Layout(BitPlanes((2, 1)), OddScale(32, 0.125), codebook=IQ2), split, join, permutes=False
)
