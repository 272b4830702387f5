"""A study: arms that differ in a thought, the problems they run, and what is expected."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from warptile.contracts import Limits, Problem

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
class Size:
    """An arm at one of the study's sizes. tiles: by problem name."""

    tiles: Mapping[str, str]


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
