"""Which kernel and tile serve a problem: this machine's table, then the shipped one, then the price."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from warptile import formats
from warptile.contracts import Identity, Kernel, Limits, Problem, Tile, UnusableInput
from warptile.kernels import by_name, for_runtime, parse_tile
from warptile.proof.version import PROOF_VERSION
from warptile.search import rank_all
from warptile.tables import NEAR, PipelineKey, Served, Table, shipped_table

DEARER = 1.5
"""A winner of another m serves where the paper puts it at most so many times above the cheapest tile: kernels and
splits of k cross over within a doubling or two of m, and a price is seldom off by more between tiles that fit an m."""

KeyOf = Callable[[Kernel, Tile, Problem], str]


class UntunedWarning(UserWarning):
    """A matmul is served by a tile that was not measured for it, or not under this driver and compiler."""


@dataclass(frozen=True)
class Route:
    """Which kernel and tile serve a problem. status: "tuned", "stale" or "untuned" as `Table.lookup` says, or "forced".

    why: what makes it stale or untuned, in words.
    """

    kernel: Kernel
    tile: Tile
    status: Literal["tuned", "stale", "untuned", "forced"]
    why: str = ""


class Notices:
    """Says once a matmul that what serves it was not measured for it."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def say(self, problem: Problem, route: Route, stacklevel: int = 5) -> None:
        """An UntunedWarning where the route is not a tuned one and nothing was said of its format, n, k and type yet.

        It points `stacklevel` frames up, at the caller of `matmul`.
        """
        about = f"{problem.format} n={problem.n} k={problem.k} {problem.x_dtype}"
        if route.status in ("tuned", "forced") or about in self._said:
            return
        self._said.add(about)
        text = f"{problem.text()} is served {route.status}: {route.why}; warptile tune measures it"
        warnings.warn(text, UntunedWarning, stacklevel=stacklevel)


def tables_of(state: Path, identity: Identity) -> tuple[Table, ...]:
    """The device's table under `state` and the shipped one of exactly that device, where there is one.

    Raises UnusableInput where the former cannot be used.
    """
    shipped = shipped_table(identity)
    own = Table.load(state / "tables", identity)
    return (own,) if shipped is None else (own, shipped)


def route(problem: Problem, tables: Sequence[Table], limits: Limits, key_of: KeyOf) -> Route:
    """What the first table serves that measured a problem's m, else the first that knows its matmul at an m nearby, if
    its price is not far above the best; else the pipeline that a tuned kernel's thresholds give its (m, n); else the
    best-priced valid tile. All but the first are "untuned".

    key_of: the key of the compiled input, to tell a stale measurement. Untuned, activations stay as they are: nobody
    has asked for a kernel that quantizes them. Raises UnusableInput where no kernel can serve the problem.
    """
    layout = formats.by_name(problem.format).layout.name
    why = f"nothing was measured within {NEAR} times its m on this device"
    known = [(table, found) for table in tables if (found := table.lookup(problem, layout, PROOF_VERSION)) is not None]
    for table, found in sorted(known, key=lambda each: each[1].status == "untuned"):
        usable = _usable(table, found, problem, layout, limits, key_of)
        if not isinstance(usable, Route):
            why = usable
        elif usable.status != "untuned" or (times := _times_the_cheapest(usable, problem, limits)) <= DEARER:
            return usable
        else:
            why = f"{usable.why}, whose winner is priced here at {times:.1f} times the cheapest tile"
    for pipeline_route in _pipelines(problem, tables, layout, limits):
        return pipeline_route
    for candidate in rank_all(problem, limits, for_runtime(limits.runtime)).candidates:
        kernel = by_name(candidate.kernel)
        if not kernel.arithmetic(candidate.tile, problem).quantizes_activations:
            return Route(kernel, candidate.tile, "untuned", why)
    raise UnusableInput(f"{problem.text()}: no kernel of {limits.runtime} has a valid tile for it here")


def _times_the_cheapest(found: Route, problem: Problem, limits: Limits) -> float:
    """The price of a route's tile over that of the cheapest valid tile which leaves activations as they are."""
    price = found.kernel.price(found.tile, problem, limits).seconds
    for candidate in rank_all(problem, limits, for_runtime(limits.runtime)).candidates:
        if not by_name(candidate.kernel).arithmetic(candidate.tile, problem).quantizes_activations:
            return price / candidate.price.seconds
    return 1.0


def _pipelines(problem: Problem, tables: Sequence[Table], layout: str, limits: Limits) -> Iterator[Route]:
    """What pipelines serve a problem, by FLOP/s where each was raced, the fastest first."""
    found: list[tuple[float, Route]] = []
    for identity, pipelines in ((table.identity, p) for table in tables for p in table.pipelines()):
        key = pipelines.key
        serving = pipelines.serving(problem)
        if serving is None or key != PipelineKey.of(key.kernel, problem, layout):
            continue
        try:
            kernel, tile = parse_tile(serving.point.tile)
        except UnusableInput:
            continue
        if not kernel.broken_rules(tile, problem, limits):
            raced = replace(problem, n=serving.n, k=serving.k, m=serving.point.m)
            why = f"{serving.size} pipeline of {key.kernel}, raced at n={serving.n} k={serving.k} m={serving.point.m}"
            stale = serving.point.validity.stale(identity, PROOF_VERSION)
            status: Literal["stale", "untuned"] = "stale" if stale else "untuned"
            rate = raced.flops / serving.point.seconds
            found.append((rate, Route(kernel, tile, status, f"{why}; {stale}" if stale else why)))
    yield from (route for _, route in sorted(found, key=lambda each: -each[0]))


def _usable(table: Table, found: Served, problem: Problem, layout: str, limits: Limits, key_of: KeyOf) -> Route | str:
    try:
        kernel, tile = parse_tile(found.tile)
    except UnusableInput as error:
        return f"the table's tile cannot be read: {error}"
    if kernel.broken_rules(tile, problem, limits):
        return f"the table's {found.tile} is not valid here any more"
    checked = table.lookup(problem, layout, PROOF_VERSION, lambda _: key_of(kernel, tile, problem))
    return Route(kernel, tile, (checked or found).status, (checked or found).why)
