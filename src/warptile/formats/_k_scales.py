"""The 12 bytes that pack eight 6-bit scales and eight 6-bit minimums in Q4_K and Q5_K.

Bytes 0-3: scales 0-3 in the low 6 bits, top two bits of scales 4-7 above; bytes 4-7: the same for minimums;
bytes 8-11: low nibbles of scales 4-7 (low) and minimums 4-7 (high).
"""

from __future__ import annotations

import numpy as np

from warptile.layouts.fields import U8


def cut_scales(packed: U8) -> tuple[U8, U8]:
    """u8[n, 12] to (scales u8[n, 8], minimums u8[n, 8])."""
    a, b, c = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([a & 63, (c & 15) | (a >> 6) << 4], axis=1)
    minimums = np.concatenate([b & 63, (c >> 4) | (b >> 6) << 4], axis=1)
    return scales, minimums


def join_scales(scales: U8, minimums: U8) -> U8:
    """Inverse of `cut_scales`."""
    a = scales[:, :4] | (scales[:, 4:] >> 4) << 6
    b = minimums[:, :4] | (minimums[:, 4:] >> 4) << 6
    c = (scales[:, 4:] & 15) | (minimums[:, 4:] & 15) << 4
    return np.concatenate([a, b, c], axis=1)
