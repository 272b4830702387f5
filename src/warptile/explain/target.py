"""What a person wants explained: one matmul in words, or every matmul of a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warptile import workloads
from warptile.check import problem_of
from warptile.contracts import Problem, UnusableInput

_WORDS = re.compile(r"([A-Za-z]\w*)\s+n=(\d{1,9})\s+k=(\d{1,9})(?:\s+m=(\d{1,7}))?(?:\s+(fp32|fp16|bf16))?")


@dataclass(frozen=True)
class Subject:
    """Problems to explain, with the name of where they come from. typed: whether their types of x and y were said.

    single: whether one matmul was asked for in words, at one number of tokens or at every one on record.
    """

    name: str
    problems: tuple[Problem, ...]
    single: bool
    typed: bool = False


def subject(text: str, ms: Sequence[int]) -> Subject:
    """The problems of `FORMAT n=N k=K [m=M] [fp16]`, or of a model or shape file at every m of `ms`.

    Raises UnusableInput for a text that is neither.
    """
    found = _WORDS.fullmatch(" ".join(text.split()))
    if found is not None:
        name, n, k, m, dtype = found.groups()
        counts = [int(m)] if m else list(ms)
        problems = [problem_of(name, int(n), int(k), each, dtype or "fp32") for each in counts]
        if any(min(p.n, p.k, p.m) < 1 for p in problems):
            raise UnusableInput(f"{text!r}: n, k and m are at least 1")
        return Subject(text, tuple(problems), True, dtype is not None)
    if not Path(text).exists() and ("=" in text or " " in text):
        raise UnusableInput(f"{text!r} is no matmul such as 'Q4_K n=4096 k=14336 m=512', and no model or shape file")
    workload = workloads.load(text)
    problems = [replace(p, count=1) for m in ms for p in workload.problems(m)]
    return Subject(workload.name, tuple(dict.fromkeys(problems)), False)
