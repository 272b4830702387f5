"""The price corrected by what was measured: how far log(seconds / price) of a tile is expected to be from 0.

A Gaussian process over tiles. What two tiles of one kernel have in common, their covariance, is a sum of terms that
can be named: the kernel itself; the kernel on a like problem; each field of the tile and each number of the paper, so
that what "stages=3" costs is learned from all tiles that have it; and all fields together, so that a tile says most
of those next to it. Tiles measured in one sitting share the machine's state. With nothing measured the correction is 0
and the order is the price's; every measurement narrows it where it was made and leaves it wide elsewhere, which is what
a search explores by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import Limits
from warptile.search.points import F32, Block, Point, Points

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Scales:
    """Variances of log(seconds / price), and the distances over which they are shared.

    kernel, kernel_here: of a kernel everywhere, and on like problems. fields, fields_here: of each field's effect, all
    fields together. near: of tiles alike in every field. sitting: of the machine's state. noise: standard deviation
    of one measurement. step: log2 units over which a field's effect falls by e; reach: the sum of such steps over all
    fields for `near`. tokens, sides, format: how much of a like problem a doubling of m, of n or k, and another
    format leave, as exponents. outlier: standard deviations off what all others say, beyond which a measurement
    counts as little as it is off: a busy machine times a run ten times too long now and then.
    """

    kernel: float = 0.05
    kernel_here: float = 0.5
    fields: float = 0.02
    fields_here: float = 0.5
    near: float = 0.6
    sitting: float = 0.04
    noise: float = 0.12
    step: float = 2.0
    reach: float = 2.0
    tokens: float = 0.6
    sides: float = 0.2
    format: float = 0.5
    outlier: float = 3.5

    @property
    def variance(self) -> float:
        """Of a tile nothing is known of."""
        return self.kernel + self.kernel_here + self.fields + self.fields_here + self.near + self.sitting


@dataclass(frozen=True)
class Observation:
    """A point and its measured seconds.

    sitting: what was measured together, in one state of the machine. doubt: standard deviation added to the
    measurement's, in natural logarithms, because it was made under another driver, compiler or source.
    """

    point: Point
    seconds: float
    sitting: str
    doubt: float = 0.0


class Correction:
    """What observations say of other tiles on the same device."""

    def __init__(self, observations: Sequence[Observation], limits: Limits, scales: Scales | None = None) -> None:
        self.observations = tuple(observations)
        self.limits, self.scales = limits, scales or Scales()
        self._known = Points([o.point for o in observations], limits)
        self._sittings = np.array([o.sitting for o in observations], dtype=str)
        if not observations:
            return
        residual = np.log([o.seconds for o in observations]) - self._known.log_prices
        noise = self.scales.noise**2 + np.array([o.doubt for o in observations]) ** 2
        shared = _gram(self._known, self._known, self.scales).astype(np.float64)
        shared += self.scales.sitting * (self._sittings[:, None] == self._sittings[None, :])
        self._whiten, self._weights = _solved(shared, noise, residual)
        # What each would be expected to be from all others, and how far off it is (Rasmussen and Williams 2006, 5.4.2).
        precision = (self._whiten**2).sum(axis=0)
        off = self._weights / precision
        lost = np.abs(off) * np.sqrt(precision) > self.scales.outlier
        if lost.any():
            self._whiten, self._weights = _solved(shared, np.where(lost, noise + off**2, noise), residual)

    def __len__(self) -> int:
        return len(self.observations)

    def of(self, points: Points, sitting: str = "") -> Estimate:
        """What points are expected to take when measured in a sitting; a sitting of its own where none is named."""
        if not self.observations:
            return Estimate(self, points, points.log_prices, np.zeros((len(points), 0)))
        shared = _gram(points, self._known, self.scales).astype(np.float64)
        shared += self.scales.sitting * (self._sittings == sitting)[None, :]
        return Estimate(self, points, points.log_prices + shared @ self._weights, shared @ self._whiten.T)

    def terms(self, point: Point) -> dict[str, float]:
        """What each field of a tile and each number of its price adds to log(seconds / price), by name; the kernel's
        own part is "kernel", what tiles like it in every field showed "near"."""
        if not self.observations or point.kernel not in self._known.blocks:
            return {}
        block = self._known.blocks[point.kernel]
        own = Points([point], self.limits).blocks[point.kernel]
        here = _here(own, block, self.scales)
        weights = self._weights[block.at]
        s = self.scales
        found = {"kernel": float(((s.kernel + s.kernel_here * here) @ weights)[0])}
        likes = _likes(own, block, s)
        for name, like in zip(own.names, likes, strict=True):
            found[name] = float(((s.fields + s.fields_here * here) * like @ weights)[0]) / len(likes)
        found["near"] = float((_near(own, block, s) * (1 + here) / 2 * s.near @ weights)[0])
        return found


class Estimate:
    """Expected log seconds of points and how sure that is.

    log_seconds f64[points]; deviation f64[points]: standard deviation of log seconds, a measurement's noise left out.
    """

    def __init__(self, correction: Correction, points: Points, log_seconds: F64, shared: F64) -> None:
        self.points, self.log_seconds = points, log_seconds
        self._scales, self._shared = correction.scales, shared
        self._variance = np.maximum(correction.scales.variance - (shared**2).sum(axis=1), 1e-6)

    @property
    def deviation(self) -> F64:
        """See the class."""
        found: F64 = np.sqrt(self._variance)
        return found

    def taken(self, index: int) -> None:
        """Narrow what is known as if a point had been measured and took what is expected."""
        kernel = self.points.points[index].kernel
        block = self.points.blocks[kernel]
        shared = np.full(len(self.points), self._scales.sitting)
        one = block.one(int(np.nonzero(block.at == index)[0][0]))
        shared[block.at] += _covariance(block, one, self._scales)[:, 0]
        shared -= self._shared @ self._shared[index]
        column = shared / np.sqrt(self._variance[index] + self._scales.noise**2)
        self._variance = np.maximum(self._variance - column**2, 1e-6)
        self._shared = np.concatenate([self._shared, column[:, None]], axis=1)


def _solved(shared: F64, noise: F64, residual: F64) -> tuple[F64, F64]:
    """(W, w) with W^T W the inverse of shared + diag(noise), and w that inverse times the residual."""
    whiten: F64 = np.linalg.inv(np.linalg.cholesky(shared + np.diag(noise)))
    return whiten, whiten.T @ (whiten @ residual)


def _gram(ours: Points, theirs: Points, scales: Scales) -> F32:
    """Covariances f32[ours, theirs], the sitting's part left out; 0 between kernels."""
    found = np.zeros((len(ours), len(theirs)), np.float32)
    for kernel, block in ours.blocks.items():
        if kernel in theirs.blocks:
            other = theirs.blocks[kernel]
            found[np.ix_(block.at, other.at)] = _covariance(block, other, scales)
    return found


def _covariance(a: Block, b: Block, s: Scales) -> F32:
    here = _here(a, b, s)
    alike = sum(_likes(a, b, s)) / np.float32(len(a.names))
    found: F32 = s.kernel + s.kernel_here * here + (s.fields + s.fields_here * here) * alike
    found += np.float32(s.near / 2) * (1 + here) * _near(a, b, s)
    return found


def _here(a: Block, b: Block, s: Scales) -> F32:
    """exp(-distance) of two problems, f32[a, b]."""
    apart = np.zeros((len(a.at), len(b.at)), np.float32)
    for column, scale in enumerate((s.tokens, s.sides, s.sides)):
        apart += np.float32(scale) * np.abs(a.place[:, None, column] - b.place[None, :, column])
    apart += np.float32(s.format) * (a.format[:, None] != b.format[None, :])
    found: F32 = np.exp(-apart)
    return found


def _likes(a: Block, b: Block, s: Scales) -> list[F32]:
    """exp(-distance / step) for each number, equality of each word, f32[a, b] each."""
    steps = [np.exp(-d / np.float32(s.step)) for d in _steps(a, b)]
    return steps + [(a.words[:, None, w] == b.words[None, :, w]).astype(np.float32) for w in range(a.words.shape[1])]


def _near(a: Block, b: Block, s: Scales) -> F32:
    """exp(-(sum of distances) / reach), another word counting as two."""
    apart = np.zeros((len(a.at), len(b.at)), np.float32)
    for distance in _steps(a, b):
        apart += distance
    for w in range(a.words.shape[1]):
        apart += 2 * (a.words[:, None, w] != b.words[None, :, w])
    found: F32 = np.exp(-apart / np.float32(s.reach))
    return found


def _steps(a: Block, b: Block) -> list[F32]:
    return [np.abs(a.numbers[:, None, c] - b.numbers[None, :, c]) for c in range(a.numbers.shape[1])]
