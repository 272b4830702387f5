"""A card that waits for the host between two marks makes a fast tile look slow: such times are never given out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.fakes import FakeRuntime
from warptile.contracts import Untimed
from warptile.runtimes.triton import timing

KERNEL_S = 20e-6


@dataclass
class Mark:
    queue: FakeQueue
    at: float

    def query(self) -> bool:
        return self.queue.host >= self.at

    def elapsed_time(self, later: Mark) -> float:
        return (later.at - self.at) * 1e3


@dataclass
class FakeQueue:
    """A device that works in order behind a host; enqueuing takes the host time, the first time more."""

    host_s: float
    first_s: float
    host: float = 0.0
    device: float = 0.0
    sleeps: list[float] = field(default_factory=list)
    forgotten: int = 0
    met: bool = False

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.device = max(self.device, self.host) + seconds

    def event(self) -> Mark:
        self.device = max(self.device, self.host)
        return Mark(self, self.device)

    def forget(self) -> None:
        self.forgotten += 1

    def synchronize(self) -> None:
        self.host = max(self.host, self.device)

    def now(self) -> float:
        return self.host

    def work(self) -> Callable[[], None]:
        def launch() -> None:
            self.host += self.host_s if self.met else self.first_s
            self.met = True
            self.device = max(self.device, self.host) + KERNEL_S

        return launch


def test_a_first_launch_that_keeps_the_device_waiting_is_timed_again() -> None:
    queue = FakeQueue(host_s=10e-6, first_s=300e-6)
    assert timing.timed(queue, [queue.work()]) == pytest.approx([KERNEL_S])
    assert queue.forgotten == 1, "the second time must not find weights in the cache"


def test_a_host_that_is_slow_each_time_is_waited_for_longer() -> None:
    queue = FakeQueue(host_s=200e-6, first_s=200e-6)
    assert timing.timed(queue, [queue.work()] * 5) == pytest.approx([KERNEL_S] * 5)
    assert queue.sleeps[-1] >= 5 * 200e-6


def test_a_host_that_is_never_in_time_is_told_not_timed() -> None:
    """Every try takes four times as long as the one before, which no doubled sleep catches."""
    queue = FakeQueue(host_s=1e-3, first_s=1e-3)

    def launch() -> None:
        queue.host += queue.host_s
        queue.host_s *= 4
        queue.device = max(queue.device, queue.host) + KERNEL_S

    with pytest.raises(Untimed, match="waited for the host"):
        timing.timed(queue, [launch])
    assert len(queue.sleeps) == timing.MOST_TRIES


@dataclass
class Allocations:
    """What `CardQueue` asks of torch to drive a cache out."""

    uint8: str = "uint8"
    sizes: list[int] = field(default_factory=list)

    def zeros(self, size: int, dtype: str, device: object) -> None:
        self.sizes.append(size)


@pytest.mark.parametrize("known", [0, 60 << 20])
def test_a_cache_is_driven_out_whether_its_size_is_known_or_not(known: int) -> None:
    """As the race's copies of weights do: a device that does not tell must not be timed on cached weights."""
    limits = dataclasses.replace(FakeRuntime({}).limits(), cache_bytes=known)
    torch = Allocations()
    timing.CardQueue(torch, "cuda:0", limits.cache_to_exceed).forget()
    (cleared,) = torch.sizes
    assert cleared > limits.cache_to_exceed >= (known or 64 << 20)


def test_launches_in_time_are_timed_once() -> None:
    queue = FakeQueue(host_s=10e-6, first_s=10e-6)
    assert timing.timed(queue, [queue.work()] * 3) == pytest.approx([KERNEL_S] * 3)
    assert len(queue.sleeps) == 1
    assert not queue.forgotten


def test_more_works_than_one_series_holds_are_all_timed() -> None:
    queue = FakeQueue(host_s=1e-6, first_s=1e-6)
    works = [queue.work()] * (timing.MOST_TIMED + 3)
    assert timing.timed(queue, works) == pytest.approx([KERNEL_S] * len(works))
    assert len(queue.sleeps) == 2
