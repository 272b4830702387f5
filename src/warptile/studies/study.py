"""A study: arms that differ in a thought, the problems they run, and what is expected."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from warptile import formats
from warptile.contracts import Limits, Problem
from warptile.kernels.price_model import wmma_lds_bytes

EXPECTATIONS = ("gain", "loss", "equal", "refused", "open")


@dataclass(frozen=True)
class StudyProblem:
    """A matmul under a name. software: the sizes a software device runs instead, None where the same."""

    name: str
    problem: Problem
    software: Problem | None = None

    def on(self, limits: Limits) -> Problem:
        """The problem as a device runs it."""
        return self.software if self.software is not None and limits.kind == "software" else self.problem


@dataclass(frozen=True)
class Lds:
    """An arm's shared memory by the matrix kernel's own sum (`price_model.wmma_lds_bytes`)."""

    warps: int
    k_chunk: int
    it_group: int

    def nbytes(self, format_name: str) -> int:
        """Bytes a workgroup; two-level scales with minimums (Q4_K, Q5_K) take 256 B a warp more."""
        two_level = formats.by_name(format_name).layout.scales.name == "k6min"
        return wmma_lds_bytes(self.warps, self.k_chunk, self.it_group, two_level)


@dataclass(frozen=True)
class Size:
    """An arm at one of the study's sizes. tiles: by problem name, empty for an arm that is only budgeted."""

    tiles: Mapping[str, str]
    lds: Lds | None = None


@dataclass(frozen=True)
class StudyArm:
    """A contender.

    sizes: one for each of the study's sizes. against: the arm it is held against; expect: what is expected of that, one
    of EXPECTATIONS. source: what the source measured, in words. also: tiles priced beside it, never raced.
    """

    name: str
    sizes: tuple[Size, ...]
    against: str
    expect: str
    source: str = ""
    why: str = ""
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Study:
    """A question, arms, and what is expected.

    device: the card's data file that paper tables are for. control: the arm all ratios are to. expected: arm names,
    fastest first. sizes: names of the sizes arms come in, the source's own first. seconds: what measuring may take.
    """

    name: str
    question: str
    hypothesis: str
    source: str
    device: str
    control: str
    expected: tuple[str, ...]
    sizes: tuple[str, ...]
    seconds: float
    problems: tuple[StudyProblem, ...]
    arms: tuple[StudyArm, ...]

    def arm(self, name: str) -> StudyArm:
        """The arm of a name."""
        return next(arm for arm in self.arms if arm.name == name)


def scaled(problem: Problem, sizes: Mapping[str, int]) -> Problem:
    """The problem with some of n, k, m replaced."""
    return dataclasses.replace(problem, **sizes)  # type: ignore[arg-type]
