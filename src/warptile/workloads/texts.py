"""A matmul as words on a command line, whole: what `words_of` writes, `problem_of` reads."""

from __future__ import annotations

import re

from warptile import formats
from warptile.contracts import Problem, UnusableInput
from warptile.contracts.samples import SAMPLE_TYPES
from warptile.gguf.escape import escaped
from warptile.workloads.experts import UNIFORM, shares

_MOST = 2**31 - 1
_NUMBERS = ("n", "k", "m", "experts", "top_k", "count")
_SHAPE = "Q4_K n=4096 k=4096 m=128, then dtype=fp16, experts=8 top_k=2 routing=uniform x=slots y=sum where they differ"


def words_of(problem: Problem) -> str:
    """`FORMAT n=N k=K m=M dtype=TYPE`, then what else differs from a dense matmul; nothing is shortened."""
    p = problem
    types = f"dtype={p.x_dtype}" if p.x_dtype == p.y_dtype else f"x_dtype={p.x_dtype} y_dtype={p.y_dtype}"
    words = [f"{p.format} n={p.n} k={p.k} m={p.m} {types}"]
    if p.grouped:
        words.append(f"experts={p.experts} top_k={p.top_k} routing={p.routing or UNIFORM}")
    words += ["x=slots"] * p.x_slots + ["y=sum"] * p.summed
    return " ".join(words)


def problem_of(text: str, dtype: str = "fp32") -> Problem:
    """The problem of such words; dtype: of x and y where the words name none. Raises UnusableInput."""
    name, *parts = text.replace(",", " ").split() or [""]
    known = {each.lower(): each for each in formats.all_formats()}
    if name.lower() not in known:
        formats.by_name(name)
    values: dict[str, str] = {}
    for part in parts:
        key, _, value = part.partition("=")
        if not value or key in values:
            raise UnusableInput(f"problem {escaped(text)}: {escaped(part)} is not understood; write {_SHAPE}")
        values[key] = value
    numbers = {key: _whole(text, key, values.pop(key)) for key in _NUMBERS if key in values}
    for key in ("n", "k", "m"):
        if key not in numbers:
            raise UnusableInput(f"problem {escaped(text)}: {key} is missing; write {_SHAPE}")
    both = values.pop("dtype", dtype)
    found = Problem(
        known[name.lower()],
        x_dtype=values.pop("x_dtype", both),
        y_dtype=values.pop("y_dtype", both),
        routing=values.pop("routing", ""),
        x_slots=_choice(text, "x", values.pop("x", "rows"), ("rows", "slots")) == "slots",
        summed=_choice(text, "y", values.pop("y", "slots"), ("slots", "sum")) == "sum",
        **numbers,
    )
    if values:
        raise UnusableInput(f"problem {escaped(text)}: {escaped(next(iter(values)))} is not understood; write {_SHAPE}")
    if reason := _amiss(found):
        raise UnusableInput(f"problem {escaped(text)}: {reason}")
    return found


def _amiss(problem: Problem) -> str:
    """Why nothing can be such a matmul, "" where it can. Raises UnusableInput for a routing that is none."""
    block = formats.by_name(problem.format).block_size
    if problem.k % block:
        return f"k = {problem.k} is not a multiple of {problem.format}'s block of {block}"
    for kind in (problem.x_dtype, problem.y_dtype):
        if kind not in SAMPLE_TYPES:
            return f"type {escaped(kind)} is none of {', '.join(SAMPLE_TYPES)}"
    if problem.top_k > problem.experts:
        return f"a token cannot take {problem.top_k} of {problem.experts} experts"
    if problem.grouped:
        shares(problem.routing, problem.experts)
    elif problem.x_slots or problem.summed:
        return "x=slots and y=sum are of grouped matmuls: give experts and routing"
    return ""


def _choice(text: str, key: str, value: str, known: tuple[str, str]) -> str:
    if value not in known:
        raise UnusableInput(f"problem {escaped(text)}: {key}={escaped(value)} is none of {', '.join(known)}")
    return value


def _whole(text: str, key: str, value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", value) or not 1 <= int(value) <= _MOST:
        raise UnusableInput(f"problem {escaped(text)}: {key}={escaped(value)} is not a whole number from 1 to {_MOST}")
    return int(value)
