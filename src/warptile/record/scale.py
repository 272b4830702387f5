"""Timings of several comparisons on one scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def joined(comparisons: Iterable[Mapping[str, tuple[float, int]]]) -> dict[str, float]:
    """Tile -> seconds on the scale of the first comparison; a comparison holds (seconds, samples) of each tile.

    Seconds of one comparison are comparable with each other only, since a clock drifts between two. A later one is
    brought to the scale of those before it by the median ratio of the tiles it shares with them, each weighing as
    the fewer of its two samples: screening drops a tile after one run, which a cold cache or clock can make 40 times
    too slow. One that shares none waits for those after it, and is left out in the end. Of a tile measured twice the
    earlier comparison's seconds stand.
    """
    scale: dict[str, tuple[float, int]] = {}
    waiting, before = list(comparisons), -1
    while len(waiting) != before:
        before, again = len(waiting), []
        for comparison in waiting:
            shared = [
                (scale[tile][0] / seconds, min(scale[tile][1], samples))
                for tile, (seconds, samples) in comparison.items()
                if tile in scale
            ]
            if scale and not shared:
                again.append(comparison)
                continue
            factor = _median(shared) if shared else 1.0
            scale = {tile: (seconds * factor, samples) for tile, (seconds, samples) in comparison.items()} | scale
        waiting = again
    return {tile: seconds for tile, (seconds, _) in scale.items()}


def _median(weighted: list[tuple[float, int]]) -> float:
    """The value that half of the weight lies on either side of; the mean of two where it lies between them."""
    ordered = sorted(weighted)
    half = sum(weight for _, weight in ordered) / 2
    below = 0
    for number, (value, weight) in enumerate(ordered):
        below += weight
        if below == half:
            return (value + ordered[number + 1][0]) / 2
        if below > half:
            return value
    raise AssertionError
