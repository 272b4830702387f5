"""Tiles as numbers: what a corrected price looks at."""

from __future__ import annotations

import math
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import Limits, Price, Problem, Tile

F32 = NDArray[np.float32]
PAPER = ("workgroups a unit", "last wave", "resident threads", "sums a thread")
"""What of the price is looked at beside a tile's own fields."""


@dataclass(frozen=True)
class Point:
    """A tile of a kernel (its full name) on a problem, with its price on paper."""

    kernel: str
    tile: Tile
    problem: Problem
    price: Price


@dataclass(frozen=True)
class Block:
    """Points of one kernel. at: their places among all. numbers f32[points, columns]: log2 of a tile's numbers (-1
    for 0), then of what the paper says; words i32[points, columns]: hashes of a tile's words. place f32[points, 3]:
    log2 of m, n, k; format i32[points]: a hash."""

    names: tuple[str, ...]
    at: NDArray[np.intp]
    numbers: F32
    words: NDArray[np.int32]
    place: F32
    format: NDArray[np.int32]

    def one(self, row: int) -> Block:
        """The block of one of its rows."""
        here = slice(row, row + 1)
        return Block(
            self.names,
            np.zeros(1, np.intp),
            self.numbers[here],
            self.words[here],
            self.place[here],
            self.format[here],
        )


class Points:
    """Points, sorted into blocks by kernel."""

    def __init__(self, points: Sequence[Point], limits: Limits) -> None:
        self.points = tuple(points)
        self._units = limits.units or 1

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def log_prices(self) -> NDArray[np.float64]:
        """Natural logarithms of the paper seconds, taken as 1 ps to 11 days."""
        found: NDArray[np.float64] = np.log(np.clip([point.price.seconds for point in self.points], 1e-12, 1e6))
        return found

    @cached_property
    def blocks(self) -> Mapping[str, Block]:
        """Blocks by the kernel's name."""
        at: dict[str, list[int]] = defaultdict(list)
        for i, point in enumerate(self.points):
            at[point.kernel].append(i)
        return {kernel: self._block(rows) for kernel, rows in at.items()}

    def _block(self, rows: Sequence[int]) -> Block:
        first = self.points[rows[0]].tile.fields()
        numbers = [name for name, value in first.items() if isinstance(value, int)]
        words = [name for name in first if name not in numbers]
        tiles = [self.points[i].tile.fields() for i in rows]
        problems = [self.points[i].problem for i in rows]
        paper = [self._paper(self.points[i].price) for i in rows]
        return Block(
            (*numbers, *PAPER, *words),
            np.array(rows, np.intp),
            np.array([[*(_log2(t[n]) for n in numbers), *p] for t, p in zip(tiles, paper, strict=True)], np.float32),
            np.array([[_hash(t[w]) for w in words] for t in tiles], np.int32).reshape(len(rows), len(words)),
            np.array([[_log2(p.m), _log2(p.n), _log2(p.k)] for p in problems], np.float32),
            np.array([_hash(p.format) for p in problems], np.int32),
        )

    def _paper(self, price: Price) -> tuple[float, ...]:
        groups = min(8.0, max(-4.0, _log2(price.workgroups / self._units)))
        return groups, 2.0 * price.fill, _log2(price.resident_threads), _log2(price.accumulators)


def _log2(value: Any) -> float:
    return math.log2(value) if value > 0 else -1.0


def _hash(word: Any) -> int:
    return zlib.crc32(str(word).encode()) >> 1
