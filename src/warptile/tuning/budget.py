"""Where the seconds go: what is left, what a step is expected to take."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Budget:
    """`seconds` from now on, and how long steps of each name took.

    clock: monotonic seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._start = clock()
        self._took: dict[str, list[float]] = defaultdict(list)

    def spent(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._start

    def left(self) -> float:
        """Seconds until the end, never negative."""
        return max(0.0, self.seconds - self.spent())

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what runs inside as one step of that name."""
        start = self._clock()
        try:
            yield
        finally:
            self._took[name].append(self._clock() - start)

    def expect(self, name: str, default: float) -> float:
        """Median seconds of the last eight steps of that name; `default` before the first."""
        took = self._took[name][-8:]
        return statistics.median(took) if took else default
