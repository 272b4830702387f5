"""What was not tried, or not settled, and what it promises: open levers, most promising first."""

from __future__ import annotations

import shlex
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warptile import formats, kernels
from warptile.contracts import Kernel, Limits, Price, Problem, UnusableInput
from warptile.handover.commands import device_words, known, model_of, reproduce
from warptile.handover.parts import Champion, Part, quartiles
from warptile.journal.facts import Timing
from warptile.search import rank
from warptile.workloads.texts import words_of

MATMULS = 2
A_MATMUL = 2
LEAST_GAIN = 1.02
ALIKE = 0.01
"""Predicted gains nearer to each other than this, of one kernel, are one lever."""

FEWEST = 3
"""Timings of a kernel on matmuls alike before its own factor is used."""

MAYBE = ("timeout", "out_of_memory", "device_lost")
"""Outcomes that may have been the machine's doing."""

MOST_INTENSITY = 200


@dataclass(frozen=True)
class Lever:
    """One thing to try. gain: champion seconds / predicted seconds; low, high: by the quartiles of the kernel's factor.

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


class Factors:
    """Measured seconds over the paper seconds that this version's prices say, by kernel on matmuls alike."""

    def __init__(self, timings: Sequence[Timing], limits: Limits) -> None:
        self._found: dict[tuple[object, ...], list[float]] = defaultdict(list)
        self._limits = limits
        for timing in timings:
            price = self.price(timing.tile, timing.problem)
            if price is not None and price.seconds > 0 and timing.seconds > 0:
                factor = timing.seconds / price.seconds
                for key in self._keys(timing.kernel, timing.problem):
                    self._found[key].append(factor)

    @staticmethod
    def _keys(kernel: str, problem: Problem) -> list[tuple[object, ...]]:
        return [(kernel, problem.format, problem.m), (kernel, problem.m), (kernel,)]

    def price(self, tile: str, problem: Problem) -> Price | None:
        """What this version says a tile costs; None where it is not valid or not known."""
        try:
            kernel, parsed = kernels.parse_tile(tile)
            if kernel.broken_rules(parsed, problem, self._limits):
                return None
            return kernel.price(parsed, problem, self._limits)
        except UnusableInput:
            return None

    def of(self, kernel: str, problem: Problem) -> tuple[float, float, float, int]:
        """Lower quartile, median, upper quartile and number; of a kernel never measured, the best other's and 0."""
        for key in self._keys(kernel, problem):
            if len(self._found[key]) >= FEWEST:
                return (*quartiles(self._found[key]), len(self._found[key]))
        medians = [statistics.median(found) for key, found in self._found.items() if len(key) == 1 and found]
        best = min(medians, default=1.0)
        return best, best, best, 0


def levers_of(part: Part, most: int = MATMULS) -> list[Lever]:
    """Levers of a device, by the share of a pass's time that each would save.

    most: matmuls of each m, the heaviest first, on which tiles that were not measured are looked for. Each offers up to
    two, and one of a kernel that was never measured there.
    """
    found = [*_unsettled(part)]
    if part.limits is not None:
        factors = Factors(part.history.timings, part.limits)
        usable = kernels.for_runtime(part.identity.runtime)
        for champion in heaviest(part, most):
            found += _untried(champion, part, factors, usable)
        found += _lost(part, factors)
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


def _untried(champion: Champion, part: Part, factors: Factors, usable: Sequence[Kernel]) -> list[Lever]:
    assert part.limits is not None
    problem, point = champion.problem, champion.point
    seen = {t.tile for t in part.history.timings if t.problem == problem}
    seen |= {r.tile for r in part.refused if r.problem == problem} | {w.tile for w in part.wrong}
    offers: list[tuple[bool, Lever]] = []
    for candidate in rank(problem, part.limits, usable):
        text = candidate.tile.text()
        if text in seen:
            continue
        low, middle, high, number = factors.of(candidate.kernel, problem)
        seconds = middle * candidate.price.seconds
        if seconds <= 0 or (gain := point.seconds / seconds) < LEAST_GAIN:
            continue
        trust = f"price corrected by {number} timings of {candidate.kernel}"
        what = f"not measured here; {trust if number else f'{candidate.kernel} was never measured here'}"
        span = (point.seconds / (high * candidate.price.seconds), point.seconds / (low * candidate.price.seconds))
        command = _command(part, point.run, problem, point.tile, text, gain)
        lever = Lever(what, problem, point.tile, text, gain, *span, _share(champion, part, gain), command)
        offers.append((number > 0, lever))
    offers.sort(key=lambda offer: -offer[1].gain)
    chosen: list[Lever] = []
    for measured, most in ((True, A_MATMUL), (False, 1)):
        few: list[Lever] = []
        for lever in (lever for known_kernel, lever in offers if known_kernel == measured):
            if len(few) < most and not any(_alike(lever, other) for other in few):
                few.append(lever)
        chosen += few
    return chosen


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


def _lost(part: Part, factors: Factors) -> list[Lever]:
    """Candidates whose end may have been the machine's doing, once each."""
    by_problem = {c.problem: c for c in part.champions}
    found: dict[tuple[Problem, str], Lever] = {}
    for each in part.refused:
        champion, price = by_problem.get(each.problem), factors.price(each.tile, each.problem)
        if each.outcome not in MAYBE or champion is None or price is None or not price.seconds > 0:
            continue
        low, middle, high, _ = factors.of(each.tile.partition(":")[0], each.problem)
        point = champion.point
        gain = point.seconds / (middle * price.seconds)
        if gain >= LEAST_GAIN:
            span = (point.seconds / (high * price.seconds), point.seconds / (low * price.seconds))
            command = _command(part, each.run, each.problem, point.tile, each.tile, gain)
            what = f"was out before a race: {each.outcome}: {each.reason}"
            found[each.problem, each.tile] = Lever(
                what, each.problem, point.tile, each.tile, gain, *span, _share(champion, part, gain), command
            )
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

    None where the rate is not known, of grouped matmuls, and from 200 operations a byte on, where reading is no bound.
    """
    rate = next((r.ceilings.read_bytes_per_s for r in reversed(part.runs) if r.ceilings is not None), 0.0)
    if not rate and part.limits is not None:
        rate = part.limits.read_gb_per_s * 1e9
    if not rate or problem.grouped or problem.format not in formats.all_formats():
        return None
    size = {"fp32": 4, "fp16": 2, "bf16": 2}
    nbytes = problem.n * formats.by_name(problem.format).row_bytes(problem.k)
    nbytes += problem.m * (problem.k * size[problem.x_dtype] + problem.n * size[problem.y_dtype])
    return nbytes / rate if problem.flops < MOST_INTENSITY * nbytes else None
