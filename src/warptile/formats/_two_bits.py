"""The codec that PQ2_0 and Q2_0 share: fp16 d, then element e in bits 2 * (e % 4) of byte e // 4."""

from __future__ import annotations

import numpy as np

from warptile.formats._bits import collapse, expand, halves, raw
from warptile.formats._format import Format
from warptile.formats._ternary import ternary
from warptile.layouts.codes import BitPlanes
from warptile.layouts.fields import F32, U8, Fields
from warptile.layouts.layout import Layout
from warptile.layouts.scales import HalfScale


def split(blocks: U8) -> Fields:
    """d[2] qs."""
    return Fields(expand(blocks[:, 2:], 2, 1), {"d": halves(blocks[:, :2])})


def join(fields: Fields) -> U8:
    """Inverse of `split`."""
    return np.concatenate([raw(fields.scales["d"]), collapse(fields.codes, 2, 1)], axis=1)


def two_bit_format(name: str, gguf_id: int, block: int) -> Format:
    """A format of `block` elements: codes 0, 1, 2, 3 mean -1, 0, +1, +2 times d."""

    def encode(values: F32) -> U8:
        digits, d = ternary(values, block, name)
        return np.concatenate([d, collapse(digits, 2, 1)], axis=1)

    layout = Layout(BitPlanes((2,)), HalfScale(block), offset=1)
    return Format(name, gguf_id, block, 2 + block // 4, layout, split, join, encode)
