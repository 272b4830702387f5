"""How tokens spread over experts: distributions by name, ids drawn from them, and the sizes of the groups they make.

A routing is a text, part of a problem and so of a table's key:

- "uniform" (or ""): every expert is as likely as another;
- "zipf:S": the expert of rank r = 1, 2, ... has a share proportional to r^-S;
- "recorded:HEX": two hexadecimal digits an expert, most used first: v with a share proportional to v^2.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from warptile.contracts.errors import UnusableInput
from warptile.contracts.problem import Problem, Workload
from warptile.gguf.escape import escaped, shown

UNIFORM = "uniform"
SAMPLES = 8
DRAWN_TOKENS = 256
_LEVELS = 255
_MOST_EXPONENT = 8.0
_MOST_BYTES = 64 << 20


def shares(routing: str, experts: int) -> NDArray[np.float64]:
    """The share of each expert, f64[experts], most used first, sum 1.

    Raises UnusableInput for an unknown routing, or a recorded one of another number of experts.
    """
    if routing in ("", UNIFORM):
        return np.full(experts, 1.0 / experts)
    kind, _, rest = routing.partition(":")
    if kind == "zipf":
        try:
            exponent = float(rest)
        except ValueError:
            exponent = -1.0
        if not 0.0 <= exponent <= _MOST_EXPONENT:
            raise UnusableInput(f"routing {escaped(routing)}: zipf:S takes S from 0 to {_MOST_EXPONENT:g}")
        weights = np.arange(1, experts + 1, dtype=np.float64) ** -exponent
    elif kind == "recorded":
        try:
            levels = np.frombuffer(bytes.fromhex(rest), np.uint8).astype(np.float64)
        except ValueError:
            levels = np.zeros(0)
        if len(levels) != experts or not levels.any():
            raise UnusableInput(f"routing recorded:... holds {len(levels)} experts, the matmul has {experts}")
        weights = np.square(levels)
    else:
        raise UnusableInput(f"routing {escaped(routing)} is none of uniform, zipf:S, recorded:HEX")
    found: NDArray[np.float64] = weights / weights.sum()
    return found


def recorded(counts: Sequence[int]) -> str:
    """The routing of experts that were taken `counts` times each. Raises UnusableInput where none was."""
    sizes = np.sort(np.asarray(counts, dtype=np.float64))[::-1]
    if not sizes.size or sizes[-1] < 0 or sizes[0] <= 0:
        raise UnusableInput("recorded routing: no expert was taken")
    levels = np.ceil(_LEVELS * np.sqrt(sizes / sizes[0])).astype(np.uint8)
    return f"recorded:{levels.tobytes().hex()}"


def routing_of(text: str) -> str:
    """A routing from a command line: one of the texts above, or a JSON file with the list of each expert's count.

    Raises UnusableInput.
    """
    if text == UNIFORM or text.partition(":")[0] in ("zipf", "recorded"):
        return text
    path = Path(text)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UnusableInput(f"{shown(path)}: larger than a list of counts may be")
        counts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UnusableInput(f"routing {escaped(text)}: not uniform, zipf:S or a JSON file: {error}") from None
    if not isinstance(counts, list) or not all(type(c) is int and 0 <= c < 1 << 53 for c in counts):
        raise UnusableInput(f"{shown(path)}: not a list of whole numbers, one an expert")
    return recorded(counts)


def routed(workload: Workload, text: str) -> Workload:
    """The workload with tokens spread over experts as `routing_of` reads `text`.

    Raises UnusableInput where it has no experts, or another number of them than a recorded routing.
    """
    routing = routing_of(text)
    grouped = [row for row in workload.rows if row.role.startswith("experts")]
    if not grouped:
        raise UnusableInput(f"{escaped(workload.source)}: no experts for routing {escaped(text)} to spread tokens over")
    for row in grouped:
        shares(routing, row.experts)
    return workload.routed(routing)


def draw_ids(routing: str, experts: int, tokens: int, top_k: int, seed: int) -> NDArray[np.int32]:
    """ids i32[tokens, top_k], no expert twice in a token, drawn by share; which expert has which share is drawn too.

    Raises UnusableInput as `shares`, and where top_k exceeds experts.
    """
    if not 1 <= top_k <= experts:
        raise UnusableInput(f"top_k = {top_k} of {experts} experts")
    rng = np.random.default_rng((seed, experts, top_k))
    with np.errstate(divide="ignore"):
        logs = np.log(shares(routing, experts))[rng.permutation(experts)]
    ids = np.empty((tokens, top_k), np.int32)
    for start in range(0, tokens, 1024):
        part = ids[start : start + 1024]
        # The largest of log share + Gumbel noise are a draw without replacement, in the order of drawing.
        keys = logs + rng.gumbel(size=(len(part), experts))
        part[:] = np.argsort(-keys, axis=1, kind="stable")[:, :top_k]
    return ids


@lru_cache(maxsize=64)
def inclusion(routing: str, experts: int, top_k: int) -> tuple[float, ...]:
    """The share of tokens that take each expert; they sum to top_k."""
    if routing in ("", UNIFORM):
        return (top_k / experts,) * experts
    counts = np.bincount(draw_ids(routing, experts, 4096, top_k, seed=0).ravel(), minlength=experts)
    return tuple(float(c) / 4096 for c in counts)


@lru_cache(maxsize=256)
def group_sizes(routing: str, experts: int, top_k: int, tokens: int) -> tuple[tuple[int, ...], ...]:
    """Tokens each expert gets, in `SAMPLES` draws that depend on the arguments alone.

    Many tokens (more than 256) are not drawn one by one: an expert's group is binomial, by the share of tokens that
    take it in 4096 drawn ones (top_k / experts where all are alike).
    """
    if tokens > DRAWN_TOKENS:
        taken = inclusion(routing, experts, top_k)
        rng = np.random.default_rng((tokens, experts, top_k))
        return tuple(tuple(int(c) for c in rng.binomial(tokens, taken)) for _ in range(SAMPLES))
    draws = (draw_ids(routing, experts, tokens, top_k, seed) for seed in range(SAMPLES))
    return tuple(tuple(int(c) for c in np.bincount(ids.ravel(), minlength=experts)) for ids in draws)


def expected_tiles(problem: Problem, tile_m: int, tail: int = 0) -> tuple[float, float]:
    """(row tiles, experts with a row) of a grouped problem, each the mean over the drawn group sizes.

    tail: a group's last tile counts tail / tile_m where its rows are `tail` or fewer; 0: always whole.
    """
    samples = group_sizes(problem.routing, problem.experts, problem.top_k, problem.m)
    sizes = np.asarray(samples, dtype=np.int64)
    tiles = -(-sizes // tile_m)
    count = tiles.astype(np.float64)
    if tail:
        last = sizes - (tiles - 1) * tile_m
        count -= np.where((sizes > 0) & (last <= tail), 1.0 - tail / tile_m, 0.0)
    return float(count.sum(axis=1).mean()), float((sizes > 0).sum(axis=1).mean())
