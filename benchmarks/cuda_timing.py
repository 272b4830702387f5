"""Timing arms against each other: each in a CUDA graph over rotating weights, interleaved, medians with intervals."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

Work = Callable[[int], None]
"""One run of an arm on weight copy i."""


@dataclass(frozen=True)
class Timing:
    """Median seconds of a run, and the interval that holds the median with about 95 % confidence (order statistics)."""

    seconds: float
    low: float
    high: float
    samples: int


def summary(samples: Sequence[float]) -> Timing:
    """Median and its interval: order statistics k = n/2 -+ 0.98 sqrt(n)."""
    ordered = sorted(samples)
    n = len(ordered)
    half = int(0.98 * n**0.5 + 0.5)
    low, high = max(0, n // 2 - half), min(n - 1, n // 2 + half)
    return Timing(ordered[n // 2], ordered[low], ordered[high], n)


class Arm:
    """An arm captured once: `runs` runs over `copies` weight copies in one graph. On the host it is just called."""

    def __init__(self, name: str, work: Work, copies: int, runs: int, cuda: bool) -> None:
        self.name = name
        self._work = work
        self._copies = copies
        self.runs = runs
        self._graph: torch.cuda.CUDAGraph | None = None
        for i in range(min(2, copies)):
            work(i)
        if cuda:
            torch.cuda.synchronize()
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                for i in range(runs):
                    work(i % copies)
            self._graph.replay()
            torch.cuda.synchronize()

    def sample(self) -> float:
        """Seconds of one run, the mean over the graph's."""
        if self._graph is None:
            start = time.perf_counter()
            for i in range(self.runs):
                self._work(i % self._copies)
            return (time.perf_counter() - start) / self.runs
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        self._graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3 / self.runs


def interleaved(arms: Sequence[Arm], rounds: int, seed: int = 0) -> dict[str, Timing]:
    """Each round samples every arm once, in random order; the first round is thrown away."""
    order = list(arms)
    rng = random.Random(seed)
    samples: dict[str, list[float]] = {arm.name: [] for arm in arms}
    for done in range(rounds + 1):
        rng.shuffle(order)
        for arm in order:
            seconds = arm.sample()
            if done:
                samples[arm.name].append(seconds)
    return {name: summary(found) for name, found in samples.items()}


def runs_for(seconds: float, copies: int) -> int:
    """Runs a graph should hold so that a replay takes about 300 us, a multiple of the copies, at most 64."""
    wanted = max(1, min(64, int(300e-6 / max(seconds, 1e-7))))
    return max(copies, -(-wanted // copies) * copies) if seconds < 150e-6 else max(2, min(copies, wanted))
