"""Ranking tiles on paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from warptile.contracts import Kernel, Limits, Price, Problem, Tile


@dataclass(frozen=True)
class Candidate:
    """A valid tile and what it costs on paper. kernel: the full name, "vulkan.mul_mm"."""

    kernel: str
    tile: Tile
    price: Price


@dataclass(frozen=True)
class Ranking:
    """Valid candidates, cheapest first, and how many tiles each broken rule refused.

    considered: distinct tiles looked at. rejected: tiles by (kernel, rule), most first; a tile that breaks several
    rules counts for the first one it breaks, so that the counts add up to the tiles refused.
    """

    candidates: tuple[Candidate, ...]
    considered: int
    rejected: Mapping[tuple[str, str], int] = field(default_factory=lambda: MappingProxyType({}))


def rank(problem: Problem, limits: Limits, kernels: Iterable[Kernel]) -> list[Candidate]:
    """Every kernel's valid tiles in order of price: seconds, then kernel and tile text, so that ties never move."""
    return list(rank_all(problem, limits, kernels).candidates)


def rank_all(problem: Problem, limits: Limits, kernels: Iterable[Kernel]) -> Ranking:
    """As `rank`, with the number of tiles refused by each rule. A tile that appears twice counts once."""
    candidates: list[Candidate] = []
    rejected: Counter[tuple[str, str]] = Counter()
    considered = 0
    for kernel in kernels:
        for tile in dict.fromkeys(kernel.space(problem, limits)):
            considered += 1
            broken = kernel.broken_rules(tile, problem, limits)
            if broken:
                rejected[kernel.name, broken[0].rule] += 1
            else:
                candidates.append(Candidate(kernel.name, tile, kernel.price(tile, problem, limits)))
    candidates.sort(key=lambda found: (found.price.seconds, found.tile.text()))
    return Ranking(tuple(candidates), considered, MappingProxyType(dict(rejected.most_common())))
