"""Pipelines: a kernel's tiles by size of matmul, as a static table would have them, but measured and kept as data.

A back end that compiles three tiles of a kernel and picks one by (m, n) has a table of three tiles and two thresholds.
Here all of it lies in the device's table, each tile with the race that put it there, so that one pipeline can be tuned
while the others stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from warptile.contracts import Problem
from warptile.tables.points import Point

SIZES = ("small", "medium", "large")


@dataclass(frozen=True, order=True)
class PipelineKey:
    """Whose pipelines: a kernel on weights of one format and layout, with these types of x and y."""

    kernel: str
    format: str
    layout: str
    x_dtype: str = "fp32"
    y_dtype: str = "fp32"

    @classmethod
    def of(cls, kernel: str, problem: Problem, layout: str) -> Self:
        """The key of a kernel's pipelines for a problem."""
        return cls(kernel, problem.format, layout, problem.x_dtype, problem.y_dtype)


@dataclass(frozen=True)
class Thresholds:
    """A matmul is small where m <= small_m or n <= small_n, else medium where m <= medium_m or n <= medium_n."""

    small_m: int = 32
    small_n: int = 32
    medium_m: int = 64
    medium_n: int = 64

    def size(self, m: int, n: int) -> str:
        """Which of `SIZES` y[m, n] takes."""
        if m <= self.small_m or n <= self.small_n:
            return "small"
        return "medium" if m <= self.medium_m or n <= self.medium_n else "large"


@dataclass(frozen=True)
class Pipeline:
    """One size's tile, raced on w[n, k] at the m of `point`."""

    size: str
    n: int
    k: int
    point: Point


@dataclass(frozen=True)
class Pipelines:
    """A kernel's pipelines on one format: thresholds, and at most one pipeline a size."""

    key: PipelineKey
    thresholds: Thresholds
    sizes: tuple[Pipeline, ...] = ()

    def of_size(self, size: str) -> Pipeline | None:
        """The pipeline of a size, None where that one was not tuned."""
        return next((p for p in self.sizes if p.size == size), None)

    def serving(self, problem: Problem) -> Pipeline | None:
        """The pipeline that the thresholds give a problem."""
        return self.of_size(self.thresholds.size(problem.m, problem.n))

    def with_pipeline(self, pipeline: Pipeline) -> Pipelines:
        """These with one size's pipeline in place of what was there; the others and the thresholds stay."""
        others = {p.size: p for p in self.sizes} | {pipeline.size: pipeline}
        return replace(self, sizes=tuple(others[size] for size in SIZES if size in others))

    def valid(self) -> bool:
        """Whether every size is known, none twice, and the thresholds are in order."""
        names = [p.size for p in self.sizes]
        t = self.thresholds
        ordered = 0 <= t.small_m <= t.medium_m and 0 <= t.small_n <= t.medium_n
        return ordered and len(set(names)) == len(names) and set(names) <= set(SIZES)
