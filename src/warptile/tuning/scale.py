"""Screenings joined on one scale: each saw the machine in its own state."""

from __future__ import annotations

import math
from collections.abc import Mapping

NEAR = 2.0


def anchor(known: Mapping[str, float]) -> str | None:
    """The tile that screenings are joined through: the first one ever measured within twice the best's seconds.

    known: seconds by tile, in the order in which they were first measured. Not the best: a tile that was best by luck
    comes out slower the next time, and joined through it everything measured before would look slower than it is, more
    with every screening (the winner's curse). Which tile came first says nothing of its luck.
    """
    best = min(known.values(), default=0.0)
    return next((tile for tile, seconds in known.items() if seconds <= NEAR * best), None)


def joined(known: Mapping[str, float], measured: Mapping[str, float], thorough: bool = False) -> dict[str, float]:
    """A screening's seconds, and `known` times what the anchor (or, without it, every shared tile) took more in it.

    A tile known before gets the geometric mean of what was known and what was measured. thorough: what was measured
    replaces what was known, joined through all shared tiles together. All seconds are of the machine's state in the
    screening, so that they say what a tile takes now.
    """
    shared = [tile for tile in measured if tile in known]
    link = anchor(known)
    through = [link] if link in measured and not thorough else shared
    logs = [math.log(measured[tile] / known[tile]) for tile in through if tile is not None]
    scale = math.exp(sum(logs) / len(logs)) if logs else 1.0
    found = {tile: seconds * scale for tile, seconds in known.items()}
    for tile, seconds in measured.items():
        old = found.get(tile)
        found[tile] = seconds if old is None or thorough else math.sqrt(old * seconds)
    return found
