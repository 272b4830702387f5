"""Putting together why a tile stands, from what is on record and what is on paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from warptile.contracts import Ceilings, Kernel, Limits, Price, Problem, Race, Resources
from warptile.record import MatmulRecord, Tried
from warptile.roofline import floor_seconds, intensity, moved_bytes
from warptile.search import rank_all


@dataclass(frozen=True)
class Roof:
    """A matmul under a device's measured roof.

    bound: "memory" where moving the bytes takes longer than the arithmetic at the ceilings, else "arithmetic".
    floor_seconds: what the ceilings allow at best. share: floor over measured seconds, None unmeasured.
    """

    flops: int
    moved_bytes: int
    intensity: float
    bend: float
    bound: str
    floor_seconds: float
    share: float | None


@dataclass(frozen=True)
class Place:
    """Where the price put a tile among every valid one: place of valid, 1 the cheapest; refused by rules before."""

    place: int
    valid: int
    considered: int


@dataclass(frozen=True)
class Side:
    """One tile on paper, by the compiler and as measured. seconds: on the matmul's common scale."""

    tile: str
    price: Price | None
    resources: Resources | None
    seconds: float | None


@dataclass(frozen=True)
class Explanation:
    """Why `tile` serves `problem` on `device`.

    basis: "measured" where a race stands behind it, "price" where it is the cheapest on paper and nothing was raced.
    outcome, reason: the decision's. race: the one behind it. chosen, stock, runner_up: the tiles' sides. ahead:
    runner-up's seconds over the chosen tile's. place: where the price put the chosen tile; roof: None without ceilings.
    limit: what keeps more threads from residing, in words. timed, proved, refused: tiles on record; refused by outcome.
    kernels: best timed tile of each other kernel, as a multiple of the chosen tile's seconds.
    """

    device: str
    problem: Problem
    basis: str
    tile: str
    outcome: str
    reason: str
    race: Race | None
    chosen: Side
    stock: Side | None
    runner_up: Side | None
    ahead: float | None
    place: Place | None
    roof: Roof | None
    limit: str
    timed: int
    refused: tuple[tuple[str, int], ...]
    kernels: tuple[tuple[str, str, float], ...]


def explain(
    device: str,
    problem: Problem,
    record: MatmulRecord | None,
    limits: Limits | None,
    ceilings: Ceilings | None,
    kernels: Sequence[Kernel],
) -> Explanation | None:
    """The explanation of one matmul; None where nothing is on record and no kernel has a valid tile on paper.

    kernels: those of the device's runtime, for the price's ranking; limits None: no ranking.
    """
    ranking = rank_all(problem, limits, kernels) if limits is not None else None
    cheapest = ranking.candidates[0].tile.text() if ranking is not None and ranking.candidates else ""
    tile = record.champion if record is not None and record.champion else cheapest
    if not tile:
        return None
    prices = {c.tile.text(): c.price for c in ranking.candidates} if ranking is not None else {}
    chosen = _side(tile, record, prices)
    measured = record is not None and record.last_race is not None
    runner = record.runner_up if record is not None else None
    place = None
    if ranking is not None and tile in prices:
        place = Place(list(prices).index(tile) + 1, len(prices), ranking.considered)
    race = record.last_race if record is not None else None
    decided = record.decided if record is not None else None
    return Explanation(
        device=device,
        problem=problem,
        basis="measured" if measured else "price",
        tile=tile,
        outcome=decided.decision.outcome if decided else "",
        reason=_reason(record),
        race=race,
        chosen=chosen,
        stock=None if race is None or race.incumbent.tile == tile else _side(race.incumbent.tile, record, prices),
        runner_up=None if runner is None else _side(runner.tile, record, prices),
        ahead=runner.seconds / chosen.seconds if runner and runner.seconds and chosen.seconds else None,
        place=place,
        roof=None if ceilings is None else _roof(problem, ceilings, record.seconds if record else None),
        limit=_limit(chosen.price, limits),
        timed=sum(t.seconds is not None for t in record.tried) if record else 0,
        refused=tuple(_refused(record).most_common()) if record else (),
        kernels=tuple(_others(record, chosen)) if record else (),
    )


def _reason(record: MatmulRecord | None) -> str:
    if record is None or record.decided is None:
        return "nothing was raced: the cheapest tile on paper"
    said = record.decided.decision.reason
    return f"{said}; the table has forgotten it since" if record.forgotten else said


def _side(tile: str, record: MatmulRecord | None, prices: dict[str, Price]) -> Side:
    tried = record.of(tile) if record is not None else None
    price = prices.get(tile) or (tried.price if tried else None)
    return Side(tile, price, tried.resources if tried else None, tried.seconds if tried else None)


def _roof(problem: Problem, ceilings: Ceilings, seconds: float | None) -> Roof:
    floor = floor_seconds(problem, ceilings)
    bend = ceilings.flops_per_s / ceilings.read_bytes_per_s
    return Roof(
        problem.flops,
        moved_bytes(problem),
        intensity(problem),
        bend,
        "memory" if intensity(problem) < bend else "arithmetic",
        floor,
        floor / seconds if seconds else None,
    )


def _refused(record: MatmulRecord) -> Counter[str]:
    counts = Counter(refused.outcome for refused in record.refused)
    counts.update("wrong" for tried in record.tried if tried.right is False)
    return counts


def _others(record: MatmulRecord, chosen: Side) -> list[tuple[str, str, float]]:
    if not chosen.seconds:
        return []
    best: dict[str, Tried] = {}
    for tried in record.tried:
        if tried.seconds is not None and tried.kernel != chosen.tile.split(":", 1)[0]:
            best.setdefault(tried.kernel, tried)
    return [(kernel, t.tile, (t.seconds or 0.0) / chosen.seconds) for kernel, t in best.items()]


def _limit(price: Price | None, limits: Limits | None) -> str:
    """What a unit holds of the limiting resource, and what it would take to hold more."""
    if price is None:
        return ""
    if limits is not None and limits.kind == "software":
        return f"{price.resident_threads} threads: a software device runs one workgroup a host thread"
    text = f"{price.resident_threads} threads a unit, limited by {price.limited_by}"
    if limits is None:
        return text
    if price.limited_by == "registers" and limits.registers_per_unit:
        text += f": {price.registers} registers a thread of {limits.registers_per_unit} a unit"
    elif price.limited_by == "shared memory" and limits.shared_bytes_per_unit:
        text += f": {price.shared_bytes} bytes a workgroup of {limits.shared_bytes_per_unit} a unit"
    elif price.limited_by == "threads" and limits.threads_per_unit:
        text += f": a unit holds {limits.threads_per_unit}"
    if limits.threads_per_unit:
        text += f" ({price.resident_threads / limits.threads_per_unit:.0%} of what it can hold)"
    return text
