"""What was not tried, or not settled, and what it promises: open levers, most promising first."""

from __future__ import annotations

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warptile import formats, kernels
from warptile.contracts import Kernel, Limits, Problem
from warptile.handover.commands import device_words, known, model_of, reproduce
from warptile.handover.parts import Champion, Part
from warptile.roofline import intensity, moved_bytes
from warptile.search import Correction, Observation, Point, Points, rank
from warptile.tuning.history import OTHER_COMPILER, point_of
from warptile.tuning.history import History as Observed
from warptile.workloads.texts import words_of

MATMULS = 2
A_MATMUL = 2
LEAST_GAIN = 1.02
ALIKE = 0.01
"""Predicted gains nearer to each other than this, of one kernel, are one lever."""

MAYBE = ("timeout", "out_of_memory", "device_lost")
"""Outcomes that may have been the machine's doing."""

NEVER = "{} was never measured here: the price alone"
MOST_INTENSITY = 200


@dataclass(frozen=True)
class Lever:
    """One thing to try. gain: champion seconds / predicted seconds, [low, high] with two thirds of its probability.

    share: what it saves, if it comes true, of the matmul time of a pass at that m. what: in words; command: to try it.
    """

    what: str
    problem: Problem
    control: str
    arm: str
    gain: float
    low: float
    high: float
    share: float
    command: str


class Expected:
    """What tiles are expected to take here: this version's prices, corrected by every timing of the device."""

    def __init__(self, part: Part, limits: Limits) -> None:
        newest = part.identity
        self._limits = limits
        observations = []
        for timing in part.history.timings:
            point = point_of(timing.tile, timing.problem, limits, kernels.parse_tile)
            if point is not None and timing.seconds > 0:
                doubt = 0.0 if timing.identity == newest else OTHER_COMPILER
                observations.append(Observation(point, timing.seconds, f"{timing.run} {timing.problem.text()}", doubt))
        self._history = Observed(observations[::-1], limits)
        self._measured = Counter(each.point.kernel for each in observations)
        self._corrections: dict[tuple[str, int], Correction] = {}

    def of(self, points: Sequence[Point]) -> list[tuple[float, float]]:
        """(seconds, standard deviation of their logarithm) of points on one problem."""
        problem = points[0].problem
        key = (problem.format, problem.m)
        if key not in self._corrections:
            self._corrections[key] = self._history.correction(problem, ())
        found = self._corrections[key].of(Points(points, self._limits))
        return [(math.exp(log), float(sure)) for log, sure in zip(found.log_seconds, found.deviation, strict=True)]

    def one(self, tile: str, problem: Problem) -> tuple[float, float] | None:
        """The same of one tile; None where this version does not know it or it is not valid."""
        point = point_of(tile, problem, self._limits, kernels.parse_tile)
        return None if point is None else self.of([point])[0]

    def timings(self, kernel: str) -> int:
        """How many timings of a kernel the device has."""
        return self._measured[kernel]


def levers_of(part: Part, most: int = MATMULS) -> list[Lever]:
    """Levers of a device, by the share of a pass's time that each would save.

    most: matmuls of each m, the heaviest first, on which tiles that were not measured are looked for. Each offers up to
    two, and one of a kernel that was never measured there.
    """
    found = [*_unsettled(part)]
    if part.limits is not None:
        expected = Expected(part, part.limits)
        usable = kernels.for_runtime(part.identity.runtime)
        for champion in heaviest(part, most):
            found += _untried(champion, part, expected, usable)
        found += _lost(part, expected)
    return sorted(found, key=lambda lever: lever.share, reverse=True)


def heaviest(part: Part, most: int) -> list[Champion]:
    """The `most` matmuls of each m that take most of a pass."""
    by_m: dict[int, list[Champion]] = defaultdict(list)
    for champion in sorted(part.champions, key=_weight, reverse=True):
        by_m[champion.problem.m].append(champion)
    return [champion for m in sorted(by_m) for champion in by_m[m][:most]]


def _weight(champion: Champion) -> float:
    return max(1, champion.count) * champion.point.seconds


def _share(champion: Champion, part: Part, gain: float) -> float:
    whole = sum(_weight(each) for each in part.champions if each.problem.m == champion.problem.m)
    return _weight(champion) * (1 - 1 / gain) / whole


def _untried(champion: Champion, part: Part, expected: Expected, usable: Sequence[Kernel]) -> list[Lever]:
    assert part.limits is not None
    problem, point = champion.problem, champion.point
    seen = {t.tile for t in part.history.timings if t.problem == problem}
    seen |= {r.tile for r in part.refused if r.problem == problem} | {w.tile for w in part.wrong}
    points = [
        Point(each.kernel, each.tile, problem, each.price)
        for each in rank(problem, part.limits, usable)
        if each.tile.text() not in seen
    ]
    offers: list[Lever] = []
    for each, (seconds, sure) in zip(points, expected.of(points) if points else (), strict=True):
        gain, number = point.seconds / seconds, expected.timings(each.kernel)
        if gain >= LEAST_GAIN:
            what = f"price corrected by {number} timings of {each.kernel}" if number else NEVER.format(each.kernel)
            offers.append(_lever(champion, part, point.run, each.tile.text(), gain, sure, what))
    offers.sort(key=lambda lever: -lever.gain)
    chosen: list[Lever] = []
    for new, most in ((False, A_MATMUL), (True, 1)):
        few: list[Lever] = []
        for lever in (each for each in offers if (expected.timings(each.arm.partition(":")[0]) == 0) == new):
            if len(few) < most and not any(_alike(lever, other) for other in few):
                few.append(lever)
        chosen += few
    return chosen


def _lever(champion: Champion, part: Part, run: str, arm: str, gain: float, sure: float, what: str) -> Lever:
    """A tile that was not raced, with two thirds of what it may turn out to be as its interval."""
    control = champion.point.tile
    span = (gain * math.exp(-sure), gain * math.exp(sure))
    command = _command(part, run, champion.problem, control, arm, gain)
    return Lever(what, champion.problem, control, arm, gain, *span, _share(champion, part, gain), command)


def _alike(one: Lever, other: Lever) -> bool:
    same = one.arm.partition(":")[0] == other.arm.partition(":")[0]
    return same and abs(one.gain - other.gain) <= ALIKE * other.gain


def _unsettled(part: Part) -> list[Lever]:
    """Races whose interval leaves a gain open, where nothing later settled them."""
    by_problem = {c.problem: c for c in part.champions}
    runs = {run.name: run for run in part.runs}
    found = []
    for row in part.rows:
        if row.superseded or row.interval is None or row.ratio is None:
            continue
        champion = by_problem.get(row.problem)
        if champion is not None and champion.point.tile != row.control:
            continue
        if row.answer not in ("no difference seen", "gain, not confirmed") or row.interval[1] < 1 + row.floor:
            continue
        gain = max(row.ratio, 1.0)
        share = _share(champion, part, gain) if champion is not None else 0.0
        what = f"H{row.number} left it open ({row.answer}): four times the rounds"
        command = reproduce(row, runs, rounds=4 * max(r.race.rounds for r in row.races))
        low, high = row.interval
        found.append(Lever(what, row.problem, row.control, row.arm, gain, low, high, share, command))
    return found


def _lost(part: Part, expected: Expected) -> list[Lever]:
    """Candidates whose end may have been the machine's doing, once each."""
    by_problem = {c.problem: c for c in part.champions}
    found: dict[tuple[Problem, str], Lever] = {}
    for each in part.refused:
        champion = by_problem.get(each.problem)
        told = expected.one(each.tile, each.problem) if each.outcome in MAYBE and champion is not None else None
        if champion is None or told is None or (gain := champion.point.seconds / told[0]) < LEAST_GAIN:
            continue
        what = f"was out before a race: {each.outcome}: {each.reason}"
        found[each.problem, each.tile] = _lever(champion, part, each.run, each.tile, gain, told[1], what)
    return list(found.values())


def _command(part: Part, run: str, problem: Problem, control: str, arm: str, gain: float) -> str:
    if not (known(control) and known(arm)):
        return ""
    runs: Mapping[str, object] = {each.name: each for each in part.runs}
    model = model_of(part.history.runs.get(run)) if run in runs else ""
    words = ["warptile", "study", "--arms", control, arm, "--problem", words_of(problem), *device_words(part.identity)]
    words += ["--model", model] if model else []
    return shlex.join([*words, "--expect", f"{gain:.2f}"])


def read_floor(part: Part, problem: Problem) -> float | None:
    """Seconds to read the packed weights and x and write y once at the device's read rate.

    None where the rate is not known, and from 200 operations a byte on, where reading is no bound.
    """
    rate = next((r.ceilings.read_bytes_per_s for r in reversed(part.runs) if r.ceilings is not None), 0.0)
    if not rate and part.limits is not None:
        rate = part.limits.read_gb_per_s * 1e9
    if not rate or problem.format not in formats.all_formats() or intensity(problem) >= MOST_INTENSITY:
        return None
    return moved_bytes(problem) / rate
