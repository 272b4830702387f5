"""Timings of several comparisons on one scale."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping


def joined(comparisons: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Tile -> seconds on the scale of the first comparison.

    Seconds of one comparison are comparable with each other only, since a clock drifts between two. A later one is
    brought to the scale of those before it by the median ratio of the tiles it shares with them; one that shares none
    is left out. Of a tile that was measured twice the earlier comparison's seconds stand.
    """
    scale: dict[str, float] = {}
    for comparison in comparisons:
        shared = [scale[tile] / seconds for tile, seconds in comparison.items() if tile in scale]
        if not scale or shared:
            factor = statistics.median(shared) if shared else 1.0
            scale = {tile: seconds * factor for tile, seconds in comparison.items()} | scale
    return scale
