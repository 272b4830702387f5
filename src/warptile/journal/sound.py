"""What a measurement can be. A line that someone edited, or that another version wrote, may say anything else."""

from __future__ import annotations

import math

from warptile import formats
from warptile.contracts import Problem, Race, UnusableInput
from warptile.contracts.samples import SAMPLE_TYPES


def sound_problem(problem: Problem) -> Problem:
    """The problem itself. Raises ValueError where nothing can be such a matmul, or its format is not known here."""
    for name in ("n", "k", "m", "experts", "top_k"):
        if getattr(problem, name) < 1:
            raise ValueError(f"{name} = {getattr(problem, name)} is no size of a matmul")
    try:
        block = formats.by_name(problem.format).block_size
    except UnusableInput as error:
        raise ValueError(str(error)) from None
    if problem.k % block:
        raise ValueError(f"k = {problem.k} is not a multiple of {problem.format}'s block of {block}")
    if not {problem.x_dtype, problem.y_dtype} <= set(SAMPLE_TYPES):
        raise ValueError(f"{problem.x_dtype}, {problem.y_dtype}: types are {', '.join(SAMPLE_TYPES)}")
    return problem


def sound_seconds(seconds: float) -> float:
    """The seconds themselves. Raises ValueError where they are not finite and above 0."""
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"{seconds} is no time that a matmul takes")
    return seconds


def sound_race(race: Race) -> Race:
    """The race itself. Raises ValueError where its problems or, after a round, its numbers cannot be."""
    for arm in (race.incumbent, race.challenger):
        sound_problem(arm.problem)
    if race.rounds:
        for seconds in (race.incumbent_seconds, race.challenger_seconds):
            sound_seconds(seconds)
        if not (0 < race.low <= race.ratio <= race.high < math.inf and 0 <= race.floor < math.inf):
            raise ValueError(f"{race.ratio} [{race.low}, {race.high}], floor {race.floor}: not of a race")
    return race
