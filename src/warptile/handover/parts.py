"""What a journal says of each device: the champions, the rows behind them, what was out, how the prices did."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from warptile import devices
from warptile.contracts import Identity, Limits, Problem, UnusableInput
from warptile.handover.rows import Row, rows_of
from warptile.journal import from_json
from warptile.journal.facts import Kept, Proved, Refused, Run, Timing
from warptile.journal.history import SCREEN, History
from warptile.search.accuracy import rank_correlation
from warptile.tables import Key, Point

FEWEST = 4
"""Tiles a screening needs for its rank correlation to be counted."""


@dataclass(frozen=True)
class Champion:
    """What is served for a matmul since `point.measured`. row: the hypothesis that put it there, 0 for none.

    count: how often one pass of a workload asks for it, 0 where unknown.
    """

    problem: Problem
    point: Point
    ref: str
    row: int
    count: int


@dataclass(frozen=True)
class PriceRecord:
    """How one kernel's prices did: measured seconds over paper seconds, quartiles over all timings with a price."""

    kernel: str
    timings: int
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Part:
    """One device through one runtime. identities: drivers and compilers it was measured with, newest last.

    limits: of the newest run that wrote them, else of its data file (`limits_of` says which), None for neither.
    spearman: of price and seconds in each screening of at least four tiles; top5: how often its fastest tile was among
    the five of best price, over those with more than five.
    """

    history: History
    identities: tuple[Identity, ...]
    runs: tuple[Run, ...]
    limits: Limits | None
    limits_of: str
    rows: tuple[Row, ...]
    champions: tuple[Champion, ...]
    refused: tuple[Refused, ...]
    wrong: tuple[Proved, ...]
    prices: tuple[PriceRecord, ...]
    spearman: tuple[float, ...]
    top5: tuple[int, int]

    @property
    def identity(self) -> Identity:
        """The newest."""
        return self.identities[-1]


def parts_of(history: History) -> list[Part]:
    """A part for each device and runtime with a verdict, race or decision, in order of first appearance."""
    seen: dict[tuple[str, str], None] = {}
    for each in (*history.verdicts, *history.races, *history.decisions, *history.candidates, *history.hypotheses):
        seen.setdefault((each.identity.device, each.identity.runtime))
    return [_part(history, *device) for device in seen]


def _part(whole: History, device: str, runtime: str) -> Part:
    history = whole.exactly(device, runtime)
    rows = rows_of(history)
    noted = sorted(
        (*history.verdicts, *history.races, *history.decisions, *history.candidates), key=lambda each: each.time
    )
    identities = tuple(dict.fromkeys(each.identity for each in noted))
    names = dict.fromkeys(each.run for each in (*noted, *history.hypotheses))
    runs = tuple(history.runs[name] for name in names if name in history.runs)
    limits, source = _limits(runs, identities[-1] if identities else None)
    spearman, top5 = _ranks(history.timings)
    return Part(
        history,
        identities,
        runs,
        limits,
        source,
        tuple(rows),
        tuple(_champions(history.points, rows, runs)),
        history.candidates,
        tuple(v for v in history.verdicts if not v.verdict.right),
        tuple(_records(history.timings)),
        spearman,
        top5,
    )


def _limits(runs: Sequence[Run], identity: Identity | None) -> tuple[Limits | None, str]:
    for run in reversed(runs):
        if run.limits is not None:
            return run.limits, "as the device said when it was measured"
    if identity is None:
        return None, ""
    for name in devices.names(None):
        if name.replace("-", " ") in identity.device.lower().replace("-", " "):
            try:
                return devices.by_name(name, identity.runtime), f"of the data file {name}"
            except UnusableInput:
                continue
    return None, ""


def _champions(points: Sequence[Kept], rows: Sequence[Row], runs: Sequence[Run]) -> list[Champion]:
    held: dict[Key, dict[int, tuple[Point, str]]] = defaultdict(dict)
    for kept in points:
        try:
            key = from_json(Key, kept.key)
            if kept.point is None:
                held.pop(key, None)
            else:
                point = from_json(Point, kept.point)
                held[key][point.m] = (point, kept.ref)
        except ValueError:
            continue
    counts = _counts(runs)
    found = []
    for key, by_m in held.items():
        for m, (point, ref) in by_m.items():
            problem = key.problem(m)
            row = max((r.number for r in rows if _behind(r, problem, point)), default=0)
            found.append(Champion(problem, point, ref, row, counts.get(_shape(problem), 0)))
    return sorted(found, key=lambda each: (each.problem.m, each.problem.format, each.problem.n, each.problem.k))


def _behind(row: Row, problem: Problem, point: Point) -> bool:
    """Whether a row is the evidence for what is served: it put the arm there, or failed to replace the control."""
    if row.problem != problem or row.run != point.run:
        return False
    return point.tile in (row.arm, row.control) and (row.arm == point.tile or row.answer != "gain")


def _shape(problem: Problem) -> tuple[str, int, int, int]:
    return problem.format, problem.n, problem.k, problem.m


def _counts(runs: Sequence[Run]) -> dict[tuple[str, int, int, int], int]:
    counts: dict[tuple[str, int, int, int], int] = {}
    for run in runs:
        ms = run.facts.get("ms")
        if run.workload is not None and isinstance(ms, list):
            for m in (m for m in ms if type(m) is int):
                counts |= {_shape(problem): problem.count for problem in run.workload.problems(m)}
    return counts


def _records(timings: Sequence[Timing]) -> list[PriceRecord]:
    factors: dict[str, list[float]] = defaultdict(list)
    for timing in timings:
        if timing.price is not None and timing.price.seconds > 0 and timing.seconds > 0:
            factors[timing.kernel].append(timing.seconds / timing.price.seconds)
    return [PriceRecord(kernel, len(found), *quartiles(found)) for kernel, found in sorted(factors.items())]


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile; of one value, that value."""
    if len(values) < 2:
        return (values[0],) * 3
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def _ranks(timings: Sequence[Timing]) -> tuple[tuple[float, ...], tuple[int, int]]:
    """Spearman of price and time a screening; (hits, screenings) of the fastest being in the price's first five."""
    screenings: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for timing in timings:
        if timing.stage == SCREEN and timing.price is not None:
            screenings[timing.ref].append((timing.price.seconds, timing.seconds))
    found, hits, of = [], 0, 0
    for pairs in screenings.values():
        if len(pairs) >= FEWEST and isfinite(rho := rank_correlation(*np.array(pairs, np.float64).T)):
            found.append(rho)
        if len(pairs) > 5:
            of += 1
            best = min(pairs, key=lambda pair: pair[1])
            hits += best in sorted(pairs)[:5]
    return tuple(found), (hits, of)
