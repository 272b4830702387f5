"""Rows drawn so that they do not depend on how many are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

ROWS_AT_ONCE = 64


def drawn_rows(n: int, draw: Callable[[np.random.Generator, int], Any], seed: int, stream: int) -> Any:
    """n rows, drawn 64 at a time from (seed, stream, index of the 64)."""
    starts = range(0, n, ROWS_AT_ONCE)
    return np.concatenate([draw(np.random.default_rng((seed, stream, s)), ROWS_AT_ONCE) for s in starts])[:n]
