"""Which candidate next: groups of problems that share binaries, and what each tile is expected to save."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from warptile.contracts import Kernel, Limits, Price, Problem, Tile
from warptile.search import Aim, Correction, Point, Points, chosen, rank_all
from warptile.tuning.result import bare

Neighbours = Callable[[Kernel, Tile, Problem, Limits], Iterable[Tile]]


@dataclass(frozen=True)
class Offer:
    """A tile, and its price on every problem of the group where it is valid."""

    text: str
    kernel: Kernel
    tile: Tile
    prices: Mapping[Problem, Price]


@dataclass
class Group:
    """Problems of one format, layout and m: a tile compiled and proved for one of them serves the others.

    stock: each problem's stock tile, where a kernel has one. counts: how often one pass asks for each problem.
    considered: tiles of its space, valid and not.
    taken: tiles tried; failed: those that were lost while they were screened unproved; rounds: batches tried; misses:
    how many of the last ones brought nothing.
    """

    format: str
    layout: str
    m: int
    problems: tuple[Problem, ...]
    counts: Mapping[Problem, int]
    offers: dict[str, Offer]
    stock: Mapping[Problem, str]
    considered: Mapping[Problem, int] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    misses: int = 0
    rounds: int = 0


def group_problems(
    problems: Iterable[Problem], limits: Limits, kernels: Sequence[Kernel], layout_of: Callable[[str], str]
) -> tuple[list[Group], list[tuple[Problem, str]]]:
    """Groups, and the problems no kernel has a valid tile for, each with the reason."""
    named = {kernel.name: kernel for kernel in kernels}
    counts: dict[Problem, int] = {}
    considered: dict[Problem, int] = {}
    for problem in problems:
        counts[bare(problem)] = max(counts.get(bare(problem), 0), problem.count)
    unserved: list[tuple[Problem, str]] = []
    sorted_in: dict[tuple[str, int], list[Problem]] = defaultdict(list)
    prices: dict[tuple[str, int], dict[str, tuple[Kernel, Tile, dict[Problem, Price]]]] = defaultdict(dict)
    for problem in counts:
        ranking = rank_all(problem, limits, kernels)
        if not ranking.candidates:
            rules = ", ".join(f"{kernel}: {rule}" for kernel, rule in list(ranking.rejected)[:2])
            unserved.append((problem, f"no valid tile ({rules})" if rules else "no kernel here has a tile for it"))
            continue
        considered[problem] = ranking.considered
        key = (problem.format, problem.m)
        sorted_in[key].append(problem)
        for candidate in ranking.candidates:
            slot = prices[key].setdefault(candidate.tile.text(), (named[candidate.kernel], candidate.tile, {}))
            slot[2][problem] = candidate.price
    groups = []
    for (name, m), members in sorted_in.items():
        stock: dict[Problem, str] = {}
        for problem in members:
            if (found := stock_tile(problem, limits, kernels)) is not None:
                kernel, tile, price = found
                stock[problem] = tile.text()
                prices[name, m].setdefault(tile.text(), (kernel, tile, {}))[2][problem] = price
        offers = {text: Offer(text, kernel, tile, of) for text, (kernel, tile, of) in prices[name, m].items()}
        mine = {p: counts[p] for p in members}
        groups.append(Group(name, layout_of(name), m, tuple(members), mine, offers, stock, considered))
    return groups, unserved


def stock_tile(problem: Problem, limits: Limits, kernels: Sequence[Kernel]) -> tuple[Kernel, Tile, Price] | None:
    """The static tables' pick and its price: the cheapest on paper where several kernels have a valid one."""
    found = []
    for kernel in kernels:
        tile = kernel.stock(problem, limits)
        if tile is not None and not kernel.broken_rules(tile, problem, limits):
            found.append((kernel, tile, kernel.price(tile, problem, limits)))
    return min(found, key=lambda each: (each[2].seconds, each[0].name), default=None)


def next_offers(
    group: Group, number: int, best: Mapping[Problem, float | None], correction: Correction, limits: Limits
) -> list[Offer]:
    """Up to `number` untried tiles whose measurement is expected to save most of a pass over the group's problems.

    best: the problems still searched, each with the seconds of its fastest tile, None where nothing was measured.
    """
    left = [offer for text, offer in group.offers.items() if text not in group.taken]
    at = {offer.text: i for i, offer in enumerate(left)}
    aims = []
    for problem, seconds in best.items():
        mine = [offer for offer in left if problem in offer.prices]
        if mine:
            points = Points([Point(o.kernel.name, o.tile, problem, o.prices[problem]) for o in mine], limits)
            estimate = correction.of(points, sitting_of(problem))
            places = np.array([at[o.text] for o in mine], np.intp)
            aims.append(Aim(group.counts[problem], estimate, places, seconds))
    return [left[i] for i in chosen(aims, [offer.text for offer in left], number)] if aims else []


def sitting_of(problem: Problem) -> str:
    """What this run's measurements of a problem are called: they are kept on one scale."""
    return f"now {problem.text()}"


def add_neighbours(group: Group, text: str, problem: Problem, limits: Limits, neighbours: Neighbours) -> None:
    """Put the tiles next to a new best one on offer, priced on every problem of the group where they are valid."""
    origin = group.offers[text]
    for tile in neighbours(origin.kernel, origin.tile, problem, limits):
        if tile.text() not in group.offers:
            kernel = origin.kernel
            valid = [p for p in group.problems if not kernel.broken_rules(tile, p, limits)]
            prices = {p: kernel.price(tile, p, limits) for p in valid}
            group.offers[tile.text()] = Offer(tile.text(), kernel, tile, prices)
