"""Noise of a device's clock: recorded A/A launches resampled in blocks, and faults laid over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RECORDED = Path(__file__).resolve().parent.parent / "data" / "race_noise.npz"
SCALE = 1e4
QUIET = "lavapipe m=128, quiet"
"""The recording that faults are laid over."""
BLOCK = 50
"""Submissions a block holds on average: the recorded logarithms keep their correlation over about so many."""

Floats = NDArray[np.float64]
Fault = Callable[[np.random.Generator, Floats], Floats]
"""(rng, start of each launch in device seconds) -> what to add to its log seconds; one is made for each run."""


@dataclass(frozen=True)
class Recording:
    """One arm launched again and again. seconds: its median launch; logs: ln(t / median) f64[submissions, launches]."""

    name: str
    seconds: float
    logs: Floats


def recordings(path: Path = RECORDED) -> dict[str, Recording]:
    """Name -> recording, of `benchmarks/race_noise.py`'s file."""
    with np.load(path) as data:
        names = [key.removesuffix(".seconds") for key in data.files if key.endswith(".seconds")]
        return {
            name: Recording(name, float(data[f"{name}.seconds"]), data[f"{name}.deviation"].astype(np.float64) / SCALE)
            for name in names
        }


class Stream:
    """Log factors, submission after submission, by the stationary bootstrap (Politis and Romano 1994).

    Blocks of recorded submissions follow one another, each from a random place and of geometric length, round the end.
    A submission starts with a recorded one's first launch, so what the first launch of a submission suffers stays.
    """

    def __init__(self, recording: Recording, rng: np.random.Generator, block: int = BLOCK) -> None:
        self._logs, self._rng, self._block = recording.logs, rng, block
        self._at = int(rng.integers(len(self._logs)))

    def submission(self, launches: int) -> Floats:
        """f64[launches] of the next submission.

        One longer than was recorded has the recorded one's first and last third, and between them the middle thirds of
        those recorded after it.
        """
        row = self._next()
        third = len(row) // 3
        if launches <= len(row):
            return row[:launches]
        middle = [row[third : len(row) - third]]
        missing = launches - len(row)
        while missing > 0:
            more = self._next()
            middle.append(more[third : len(more) - third][:missing])
            missing -= len(middle[-1])
        return np.concatenate([row[:third], *middle, row[len(row) - third :]])

    def _next(self) -> Floats:
        row = self._logs[self._at]
        jump = self._rng.random() < 1 / self._block
        self._at = int(self._rng.integers(len(self._logs))) if jump else (self._at + 1) % len(self._logs)
        return np.asarray(row)


def drift(rng: np.random.Generator, start: Floats) -> Floats:
    """A clock that falls by a fifth in a minute and swings by 3 % every 7 s."""
    return 0.2 * np.minimum(start / 60, 3) + 0.03 * np.sin(2 * np.pi * start / 7)


def outliers(rng: np.random.Generator, start: Floats) -> Floats:
    """One launch in twenty is interrupted for a Pareto length (shape 1.2)."""
    hit = rng.random(start.shape) < 0.05
    return np.asarray(np.log1p(hit * rng.pareto(1.2, start.shape)))


class Bimodal:
    """Two clocks a third apart; the device changes between them after exponential times of 30 ms on average."""

    def __init__(self, dwell: float = 0.03, gap: float = 0.3) -> None:
        self._dwell, self._gap = dwell, gap
        self._slow, self._until = False, 0.0

    def __call__(self, rng: np.random.Generator, start: Floats) -> Floats:
        added = np.zeros(start.shape)
        for i, now in enumerate(start):
            while now >= self._until:
                self._slow, self._until = (
                    not self._slow,
                    max(self._until, now - self._dwell) + rng.exponential(self._dwell),
                )
            added[i] = self._gap * self._slow
        return added


@dataclass(frozen=True)
class Noise:
    """A recording and what is laid over it. faults: makers, since a fault may remember the run it is in."""

    recording: Recording
    faults: tuple[Callable[[], Fault], ...] = ()
    name: str = ""


def noises(path: Path = RECORDED) -> dict[str, Noise]:
    """Every recording as it is, and drift, outliers and two clocks over a quiet one."""
    found = recordings(path)
    kinds = {name: Noise(recording, (), name) for name, recording in found.items()}
    base = found[QUIET]
    for name, fault in (("drift", lambda: drift), ("outliers", lambda: outliers), ("two clocks", Bimodal)):
        kinds[name] = Noise(base, (fault,), name)
    return kinds
