"""Which candidate next: groups of problems that share binaries, prices corrected by what was measured."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from warptile.contracts import Kernel, Limits, Price, Problem, Tile
from warptile.search import rank_all
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
    taken: tiles tried; near: tiles next to the last new best one; rounds: batches tried; misses: how many of the
    last ones brought nothing.
    """

    format: str
    layout: str
    m: int
    problems: tuple[Problem, ...]
    counts: Mapping[Problem, int]
    offers: dict[str, Offer]
    stock: Mapping[Problem, str]
    taken: set[str] = field(default_factory=set)
    near: set[str] = field(default_factory=set)
    misses: int = 0
    rounds: int = 0


def group_problems(
    problems: Iterable[Problem], limits: Limits, kernels: Sequence[Kernel], layout_of: Callable[[str], str]
) -> tuple[list[Group], list[tuple[Problem, str]]]:
    """Groups, and the problems no kernel has a valid tile for, each with the reason."""
    named = {kernel.name: kernel for kernel in kernels}
    counts: dict[Problem, int] = {}
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
        groups.append(Group(name, layout_of(name), m, tuple(members), mine, offers, stock))
    return groups, unserved


def stock_tile(problem: Problem, limits: Limits, kernels: Sequence[Kernel]) -> tuple[Kernel, Tile, Price] | None:
    """The static tables' pick and its price: the cheapest on paper where several kernels have a valid one."""
    found = []
    for kernel in kernels:
        tile = kernel.stock(problem, limits)
        if tile is not None and not kernel.broken_rules(tile, problem, limits):
            found.append((kernel, tile, kernel.price(tile, problem, limits)))
    return min(found, key=lambda each: (each[2].seconds, each[0].name), default=None)


class Calibration:
    """Measured seconds over paper seconds, a kernel: a price is an order on paper, this puts kernels on one scale."""

    def __init__(self) -> None:
        self._ratios: dict[str, list[float]] = defaultdict(list)

    def add(self, kernel: str, price: float, seconds: float) -> None:
        """One measurement beside its price."""
        if price > 0 and seconds > 0:
            self._ratios[kernel].append(seconds / price)

    def factor(self, kernel: str) -> float:
        """Median ratio of the kernel; of all kernels where it has none yet, smallest first (hopeful); else 1."""
        if self._ratios[kernel]:
            return statistics.median(self._ratios[kernel])
        return min((statistics.median(r) for r in self._ratios.values() if r), default=1.0)


def next_offers(
    group: Group, number: int, best: Mapping[Problem, tuple[str, float]], calibration: Calibration
) -> list[Offer]:
    """Up to `number` untried tiles: by turns the most promising of all, and the most promising near a best one.

    best: the fastest tile and its seconds, a problem. A tile's promise is the time of one pass over the group if
    each problem took the better of it and the best so far; among equals the tile's own time.
    """
    left = [offer for text, offer in group.offers.items() if text not in group.taken]
    ordered = sorted(left, key=lambda offer: _promise(offer, group, best, calibration))
    near = [offer for offer in ordered if offer.text in group.near]
    chosen: dict[str, Offer] = {}
    while len(chosen) < number and (near or ordered):
        turn = near if near and (group.rounds + len(chosen)) % 2 else ordered or near
        offer = turn.pop(0)
        chosen.setdefault(offer.text, offer)
    return list(chosen.values())


def add_neighbours(group: Group, text: str, problem: Problem, limits: Limits, neighbours: Neighbours) -> None:
    """Put the tiles next to a new best one on offer, priced on every problem of the group where they are valid."""
    origin = group.offers[text]
    group.near.clear()
    for tile in neighbours(origin.kernel, origin.tile, problem, limits):
        group.near.add(tile.text())
        if tile.text() not in group.offers:
            kernel = origin.kernel
            valid = [p for p in group.problems if not kernel.broken_rules(tile, p, limits)]
            prices = {p: kernel.price(tile, p, limits) for p in valid}
            group.offers[tile.text()] = Offer(tile.text(), kernel, tile, prices)


def _promise(
    offer: Offer, group: Group, best: Mapping[Problem, tuple[str, float]], calibration: Calibration
) -> tuple[float, float, str]:
    factor = calibration.factor(offer.kernel.name)
    together, alone = 0.0, 0.0
    for problem, count in group.counts.items():
        so_far = best[problem][1] if problem in best else float("inf")
        price = offer.prices.get(problem)
        mine = factor * price.seconds if price is not None else float("inf")
        together += count * min(so_far, mine)
        alone += count * (mine if price is not None else so_far)
    return together, alone, offer.text
