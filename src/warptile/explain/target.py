"""What a person wants explained: one matmul in words, or every matmul of a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warptile import workloads
from warptile.contracts import Problem, UnusableInput
from warptile.gguf.escape import escaped
from warptile.workloads.texts import problem_of

_TYPE = re.compile(r"\s(fp32|fp16|bf16)$")


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
    """The problems of a matmul in words as `workloads.texts` has them (`FORMAT n=N k=K [m=M] [dtype=fp16] ...`, the
    type also bare), or of a model or shape file; without an m at every one of `ms`.

    Raises UnusableInput for a text that is neither.
    """
    if not Path(text).exists() and ("=" in text or " " in text.strip()):
        if "=" not in text:
            raise UnusableInput(f"{escaped(text)} is no matmul such as 'Q4_K n=4096 k=14336 m=512', and no file")
        words = _TYPE.sub(r" dtype=\1", " ".join(text.replace(",", " ").split()))
        said = {word.partition("=")[0] for word in words.split()}
        counts = [words] if "m" in said else [f"{words} m={m}" for m in ms]
        problems = [problem_of(each) for each in counts]
        return Subject(text, tuple(problems), True, not said.isdisjoint(("dtype", "x_dtype", "y_dtype")))
    workload = workloads.load(text)
    problems = [replace(p, count=1) for m in ms for p in workload.problems(m)]
    return Subject(workload.name, tuple(dict.fromkeys(problems)), False)
