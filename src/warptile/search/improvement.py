"""Which tiles to measure next: those whose measurement is expected to save most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warptile.search.correction import Estimate

F64 = NDArray[np.float64]


def improvement(log_seconds: F64, deviation: F64, best: float) -> F64:
    """E[max(best - s, 0)] of log-normal seconds s, for each of them: best * Phi(z) - exp(mu + d^2 / 2) * Phi(z - d)
    with z = (ln best - mu) / d. Jones, Schonlau and Welch's expected improvement (1998)."""
    from scipy.special import ndtr

    z = (math.log(best) - log_seconds) / deviation
    found: F64 = best * ndtr(z) - np.exp(log_seconds + deviation**2 / 2) * ndtr(z - deviation)
    return found


@dataclass
class Aim:
    """One problem of a group: how often a pass runs it, its estimate over tiles, each tile's place among all tiles of
    the group, and the seconds of its best tile, None where nothing was measured."""

    count: int
    estimate: Estimate
    at: NDArray[np.intp]
    best: float | None


def chosen(aims: Sequence[Aim], texts: Sequence[str], number: int) -> list[int]:
    """Up to `number` places of tiles, one after another: of most expected seconds saved in one pass of the group.

    What a tile saves is summed over the problems. Once a tile is chosen, tiles like it are less uncertain and so less
    worth measuring beside it. Where a problem has no best tile yet, that which is expected to be fastest stands in.
    Ties go to less expected time, then by text.
    """
    taken: list[int] = []
    bests = [a.best if a.best is not None else float(np.exp(a.estimate.log_seconds.min())) for a in aims]
    expected = np.full(len(texts), np.inf)
    for a in aims:
        expected[a.at] = np.minimum(expected[a.at], a.estimate.log_seconds)
    alphabet = np.argsort(np.argsort(np.array(texts, dtype=str)))
    while len(taken) < min(number, len(texts)):
        saved = np.zeros(len(texts))
        for a, best in zip(aims, bests, strict=True):
            saved[a.at] += a.count * improvement(a.estimate.log_seconds, a.estimate.deviation, best)
        saved[taken] = -np.inf
        index = int(np.lexsort((alphabet, expected, -saved))[0])
        taken.append(index)
        for a in aims:
            place = np.nonzero(a.at == index)[0]
            if len(place):
                a.estimate.taken(int(place[0]))
    return taken
