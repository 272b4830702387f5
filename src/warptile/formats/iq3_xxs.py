"""IQ3_XXS: 256 elements in 98 bytes. fp16 d; a grid index for each 4 elements; for each 32 a word: four 7-bit signs of
eight and the scale in its top 4 bits. value = d / 4 * (2 sc + 1) * +-grid."""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import halves, raw
from warptile.formats._codebooks import IQ3_XXS
from warptile.formats._format import Format
from warptile.formats._grids import as_bytes, bytes_of, fields_of, grid, join_fields, parity_signs
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.small_scales import OddScale

_SIGNS = (0, 7, 14, 21)


def split(blocks: U8) -> Fields:
    """d[2] qs[64] words[32]."""
    words = np.ascontiguousarray(blocks[:, 66:]).view("<u4")
    signs = parity_signs()[fields_of(words, _SIGNS, 127)].reshape(len(blocks), 64, 4)
    codes = grid("IQ3_XXS").unfold(blocks[:, 2:66]) | signs << np.uint8(3)
    sc = (words >> np.uint32(28)).astype(np.uint8)
    return Fields(codes.reshape(len(blocks), 256), {"d": halves(blocks[:, :2]), "sc": sc})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    codes = fields.codes.reshape(len(fields.codes), 64, 4)
    entries = grid("IQ3_XXS").fold(codes & np.uint8(7)).astype(np.uint8)
    signs = bytes_of(codes.reshape(len(codes), 32, 8)[..., :7] >> np.uint8(3))
    words = join_fields(signs, _SIGNS, "<u4") | fields.scales["sc"].astype("<u4") << np.uint32(28)
    return np.concatenate([raw(fields.scales["d"]), entries, as_bytes(words)], axis=1)


FORMAT = Format(
    "IQ3_XXS", 18, 256, 98, Layout(BitPlanes((4,)), OddScale(32, 0.25), codebook=IQ3_XXS), split, join, permutes=False
)
