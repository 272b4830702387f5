"""What the device decoder must know of an arrangement, as plain numbers."""

from __future__ import annotations

import numpy as np

from warptile.layouts.codes import BitPlanes
from warptile.layouts.triton.arrangement import Arrangement
from warptile.layouts.trits import TritPlane

Parameters = tuple[int | float | str, ...]


def decoder_parameters(arranged: Arrangement) -> Parameters:
    """`L` of `decode`, by position.

    0, 1 bits of the code planes (0: none); 2 chunks a step; 3, 4, 5 bytes of the trit stages (0: none); 6 scale kind;
    7 groups a step (at least 1); 8 elements along k that the first scale plane's element covers; 9 offset, 10
    multiplier (0: codebook); 11 to 14 the codebook's words, signed; 15 code planes; 16 whether there is a minimum; 17
    the scale kind's factor.
    """
    layout = arranged.layout
    widths = layout.codes.widths if isinstance(layout.codes, BitPlanes) else ()
    counts = tuple(count for count, _ in layout.codes.stages) if isinstance(layout.codes, TritPlane) else (0, 0, 0)
    planes = arranged.scales.planes
    multiplier, offset = 1, float(layout.offset)
    words: tuple[int, ...] = (0, 0, 0, 0)
    if layout.codebook is not None:
        values = layout.codebook.values
        if len(values) == 2:
            multiplier, offset = values[1] - values[0], float(-values[0])
        else:
            multiplier = 0
            words = tuple(int(w) for w in np.array(values, dtype=np.int8).view("<i4"))
    return (
        *(*widths, 0, 0)[:2],
        arranged.chunks,
        *counts,
        arranged.scales.kind,
        max(1, arranged.scales.groups),
        planes[0].span if planes else arranged.step,
        offset,
        multiplier,
        *words,
        len(arranged.code_planes),
        int(layout.scales.has_minimum),
        arranged.scales.factor,
    )
