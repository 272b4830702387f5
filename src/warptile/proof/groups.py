"""Which tokens go to which experts in a proof of a grouped matmul: sizes of groups at the tile's edges, and beyond."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import Problem
from warptile.proof.shapes import WHOLE_MACS
from warptile.workloads.experts import draw_ids

Ids = NDArray[np.int32]
MOST_EXPERTS = 5
"""Experts of a shape that is not the whole problem: enough for a group of each size below."""

OUTSIDE = (-1, -(2**31), 2**31 - 1)
"""Ids that name no expert, beside the number of experts itself."""


@dataclass(frozen=True)
class GroupedShape:
    """ids[tokens, top_k] of `experts` experts, w[experts, n, k]; parts: buffers that the experts are spread over."""

    name: str
    ids: Ids
    experts: int
    n: int
    k: int
    parts: int = 1

    @property
    def tokens(self) -> int:
        """Rows of ids."""
        return len(self.ids)

    def of(self, problem: Problem) -> Problem:
        """The problem at this shape."""
        return Problem(
            problem.format,
            self.n,
            self.k,
            self.tokens,
            problem.x_dtype,
            problem.y_dtype,
            self.experts,
            self.ids.shape[1],
            routing=problem.routing or "uniform",
            x_slots=problem.x_slots,
            summed=problem.summed,
        )


def groups_of(sizes: list[int], top_k: int, outside: tuple[int, ...], seed: int) -> Ids:
    """ids[tokens, top_k], shuffled, of which sizes[e] are e, and one each of `outside`; filled up to whole tokens by
    the last expert."""
    flat = [e for e, size in enumerate(sizes) for _ in range(size)] + list(outside)
    flat += [len(sizes) - 1] * (-len(flat) % top_k)
    return np.random.default_rng(seed).permutation(np.array(flat, np.int32)).reshape(-1, top_k)


def plan(
    level: str,
    boundaries: tuple[int, int, int],
    problem: Problem,
    block_size: int,
    seed: int,
    valid: Callable[[GroupedShape], bool],
) -> tuple[list[GroupedShape], GroupedShape, int]:
    """(shapes, the whole problem's, how many shapes the tile's rules refuse).

    With (m, n, k) the tile's steps: groups of m - 1, m, m + 1, 1 and no rows beside ids that name no expert, at the
    problem's own k and its remainder of n; one expert with every row, over a row of n more than a step; one token;
    experts in two buffers. "full" adds twice the step, and k of one and of three steps.

    The whole problem has its own n, k and experts, its tokens drawn from its routing, as many as keep it within the
    multiply-adds of `shapes.plan`.
    """
    step_m, step_n, step_k = (max(1, s) for s in boundaries)
    top_k, few = problem.top_k, min(problem.experts, MOST_EXPERTS)
    short_k = -(-step_k // block_size) * block_size
    own_n = problem.n if problem.n <= step_n else step_n + problem.n % step_n
    edges = [step_m + 1, 0, step_m, max(0, step_m - 1), 1][:few]
    every = [0] * (few - 1) + [step_m + 1]
    outside = (few, *OUTSIDE)

    def shape(name: str, sizes: list[int], bad: tuple[int, ...], n: int, k: int, parts: int = 1) -> GroupedShape:
        return GroupedShape(name, groups_of(sizes, top_k, bad, seed), few, n, k, parts)

    wanted = [
        shape("groups at the tile's edges", edges, (), step_n, problem.k),
        shape("ids that name no expert", edges[::-1], outside, own_n, short_k),
        shape("every row to one expert", every, (), step_n + 1, short_k),
        GroupedShape("one token", draw_ids("", few, 1, min(top_k, few), seed), few, max(1, step_n - 1), problem.k),
        shape("no expert at all", [0] * few, outside, own_n, short_k),
    ]
    if few > 1:
        wanted.append(shape("experts in two buffers", edges, (few,), step_n, short_k, 2))
    if level == "full":
        double = [2 * step_m + 1, 2 * step_m, 0, 2 * step_m - 1, step_m][:few]
        for k in dict.fromkeys((short_k, 3 * short_k, problem.k)):
            for n in dict.fromkeys((1, step_n - 1, own_n, 2 * step_n, 2 * step_n + 1)):
                if n >= 1:
                    wanted.append(shape("groups of two tiles", double, outside, n, k))
    tokens = min(problem.m, max(1, WHOLE_MACS[level] // (top_k * problem.n * problem.k)))
    ids = draw_ids(problem.routing, problem.experts, tokens, top_k, seed)
    whole = GroupedShape("the whole problem", ids, problem.experts, problem.n, problem.k)
    kept = [s for s in wanted if valid(s)]
    return kept, whole, len(wanted) - len(kept)
