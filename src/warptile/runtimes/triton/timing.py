"""Timing launches on a card that is never short of work while it is timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Protocol

from warptile.contracts import Untimed

SLEEP_SECONDS_A_LAUNCH = 60e-6
ASSUMED_CLOCK_HZ = 2.0e9
MOST_TIMED = 400
MOST_TRIES = 5
LONGER = 2.0


class Queue(Protocol):
    """A device's stream of work."""

    def sleep(self, seconds: float) -> None:
        """Enqueue so much idle time, about."""

    def event(self) -> Any:
        """Enqueue a mark of time, with `query` (whether the device has come to it) and `elapsed_time` (milliseconds to
        another)."""

    def forget(self) -> None:
        """Enqueue what drives weights and activations out of the device's cache."""

    def synchronize(self) -> None:
        """Wait until all is done."""

    def now(self) -> float:
        """Seconds on the host's clock."""


def timed(queue: Queue, works: Sequence[Callable[[], None]]) -> list[float]:
    """Seconds between two marks around each work.

    The device sleeps until all is enqueued: 60 us a launch, which is what most take. What the host does for the first
    time takes longer (descriptors of weights not met before, memory for parts of sums): then the device would wait
    for the host between two marks, and a launch of 20 us read 100. So where the device had begun before the last launch
    was enqueued, all of them are timed again, from a cold cache and after a longer sleep, five times at most. Raises
    Untimed where the last of them was no better: what it read is not the device's time.
    """
    seconds: list[float] = []
    for start in range(0, len(works), MOST_TIMED):
        seconds += _together(queue, works[start : start + MOST_TIMED])
    return seconds


def _together(queue: Queue, works: Sequence[Callable[[], None]]) -> list[float]:
    asleep = SLEEP_SECONDS_A_LAUNCH * len(works)
    for attempt in range(MOST_TRIES):
        if attempt:
            queue.forget()
        began = queue.now()
        queue.sleep(asleep)
        events = [queue.event()]
        for work in works:
            work()
            events.append(queue.event())
        late = bool(events[0].query())
        took = queue.now() - began
        queue.synchronize()
        if not late:
            return [a.elapsed_time(b) * 1e-3 for a, b in pairwise(events)]
        asleep = LONGER * max(asleep, took)
    raise Untimed(
        f"the device waited for the host each of {MOST_TRIES} times that {len(works)} launches were timed; the host"
        f" last took {took * 1e3:.3g} ms to enqueue them"
    )


class CardQueue:
    """torch's current stream of a device, as `timed` takes it."""

    def __init__(self, torch: Any, device: Any, cache_to_exceed: int) -> None:
        self._torch, self._device = torch, device
        self._more_than_cache = 2 * cache_to_exceed

    def sleep(self, seconds: float) -> None:
        """See `Queue.sleep`; longer where the device's clock is slower."""
        self._torch.cuda._sleep(int(seconds * ASSUMED_CLOCK_HZ))

    def event(self) -> Any:
        """See `Queue.event`."""
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def forget(self) -> None:
        """See `Queue.forget`."""
        self._torch.zeros(self._more_than_cache, dtype=self._torch.uint8, device=self._device)

    def synchronize(self) -> None:
        """See `Queue.synchronize`."""
        self._torch.cuda.synchronize(self._device)

    def now(self) -> float:
        """See `Queue.now`."""
        return time.perf_counter()
