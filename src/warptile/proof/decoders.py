"""The check "decode": the reference's own decode of a format is that of the `gguf` package, which others wrote.

A format read wrongly in one place is read wrongly everywhere: kernels and reference would agree on plausible values
that are not the file's. Held to the bit on blocks of any bytes; NaNs are one value, as are the two zeros.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warptile.formats import Format
from warptile.proof.checks import Finding
from warptile.proof.weights import terms

BLOCKS = 64


def decoded(fmt: Format, seed: int = 0, blocks: NDArray[np.uint8] | None = None) -> Finding | None:
    """ "decode" on drawn bytes, or on u8[count, block_bytes]; nothing is asked of a format the package lacks."""
    import gguf

    try:
        kind = gguf.GGMLQuantizationType[fmt.name]
        if blocks is None:
            blocks = np.random.default_rng((seed, fmt.gguf_id)).integers(0, 256, (BLOCKS, fmt.block_bytes), np.uint8)
        with np.errstate(all="ignore"):
            want = np.asarray(gguf.quants.dequantize(blocks, kind), np.float32)
            got = terms(fmt, blocks)[0].astype(np.float32)
    except (KeyError, NotImplementedError):
        return None
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    if same.all():
        return None
    block, element = np.unravel_index(int(np.argmax(~same)), same.shape)
    return Finding(
        "decode",
        f"{int((~same).sum())} of {same.size} values of {fmt.name} differ from the gguf package's, first element"
        f" {element} of block {block}: {got[block, element]:.9g}, want {want[block, element]:.9g}",
    )
