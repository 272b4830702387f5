"""What a screening, a play-off and a race are told alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from warptile import kernels
from warptile.race.bench import Bench, Resolve


@dataclass(frozen=True)
class Terms:
    """On what arms are timed, and how.

    seed: of every order that is drawn. budget_seconds: what timing may take once everything is compiled. expected: ids
    of the proved binaries by tile text, where any must be met. resolve: finds the kernels of tiles. clock: seconds.
    """

    bench: Bench
    seed: int
    budget_seconds: float
    expected: Mapping[str, int] | None = None
    resolve: Resolve = kernels.parse_tile
    clock: Callable[[], float] = time.monotonic
