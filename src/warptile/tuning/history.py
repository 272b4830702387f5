"""What was measured on this device, by earlier runs and by this one, as observations that correct the price."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from warptile.contracts import CandidateRejected, Identity, Kernel, Limits, Problem, Race, Tile, UnusableInput
from warptile.journal import Entry, from_json
from warptile.journal.sound import sound_problem, sound_race, sound_seconds
from warptile.search import Correction, Observation, Point
from warptile.tables import Key
from warptile.tuning.result import bare

Parse = Callable[[str], tuple[Kernel, Tile]]
SourceOf = Callable[[str, Problem], str]

MOST_OBSERVATIONS = 600
MOST_READ = 6000
OTHER_COMPILER = 0.15
OTHER_SOURCE = 0.3
"""Standard deviations of log seconds that a driver's or compiler's version, and a change of a kernel's source, add."""
OTHER_FORMAT = 1.5
"""How far another format is, in doublings of m."""


class History:
    """Observations of one device. past: of earlier runs, as `past_of` reads them."""

    def __init__(self, past: Sequence[Observation], limits: Limits) -> None:
        self.past, self._limits = tuple(past), limits

    def correction(self, problem: Problem, own: Sequence[Observation]) -> Correction:
        """Learned from the 600 observations nearest to a problem in format and m, this run's (`own`) first."""

        def distance(observation: Observation) -> float:
            other = observation.point.problem
            apart = abs(math.log2(max(1, other.m)) - math.log2(max(1, problem.m)))
            return apart + OTHER_FORMAT * (other.format != problem.format) + 4 * observation.doubt

        nearest = sorted(own, key=distance)[:MOST_OBSERVATIONS]
        nearest += sorted(self.past, key=distance)[: MOST_OBSERVATIONS - len(nearest)]
        return Correction(nearest, self._limits)


def past_of(
    entries: Iterable[Entry], identity: Identity, limits: Limits, parse: Parse, source_of: SourceOf
) -> list[Observation]:
    """Every timing in a journal's entries of this device through this runtime, newest first, 6000 at most.

    A tile that this version does not know, or that is not valid here now, is left out; a price is today's. What was
    measured under another driver or compiler, or with another source, is doubted: by 15 % and 30 %. What was timed
    before a table's key was forgotten is forgotten too.
    """
    timings: list[tuple[Problem, str, str, float, str, float]] = []
    for entry in entries:
        try:
            who = entry.get("identity") or {}
            if entry["kind"] == "table" and entry["action"] == "forget":
                key = from_json(Key, entry["key"])
                timings = [t for t in timings if Key.of(t[0], key.layout) != key]
            elif (who.get("device"), who.get("runtime")) == (identity.device, identity.runtime):
                same = (who.get("driver"), who.get("compiler")) == (identity.driver, identity.compiler)
                doubt = 0.0 if same else OTHER_COMPILER
                timings += [(*timed, str(entry.get("run", "")), doubt) for timed in _timings(entry)]
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            continue
    found: list[Observation] = []
    for problem, text, source, seconds, run, doubt in reversed(timings):
        if len(found) == MOST_READ:
            break
        point = point_of(text, problem, limits, parse)
        if point is not None and 0 < seconds < math.inf:
            changed = OTHER_SOURCE if source_of(text, problem) != source else 0.0
            found.append(Observation(point, seconds, f"{run} {problem.text()}", math.hypot(doubt, changed)))
    return found


def point_of(text: str, problem: Problem, limits: Limits, parse: Parse) -> Point | None:
    """A tile's text as a point with today's price; None where this version or this device does not know it."""
    try:
        kernel, tile = parse(text)
        if kernel.broken_rules(tile, problem, limits):
            return None
        return Point(kernel.name, tile, problem, kernel.price(tile, problem, limits))
    except (UnusableInput, CandidateRejected, ArithmeticError, ValueError):
        # A line that was edited by hand may hold any numbers.
        return None


def _timings(entry: Entry) -> Iterator[tuple[Problem, str, str, float]]:
    """(problem, tile, source, seconds) of a screening's or race's arms."""
    if entry["kind"] != "race":
        return
    if entry["stage"] == "screen":
        problem = bare(sound_problem(from_json(Problem, entry["problem"])))
        for arm in entry["arms"]:
            # One arm that was edited by hand says nothing against those beside it.
            with contextlib.suppress(ValueError):
                if arm["seconds"] is not None:
                    yield problem, str(arm["tile"]), str(arm["source"]), sound_seconds(float(arm["seconds"]))
        return
    race = sound_race(from_json(Race, entry["race"]))
    problem = bare(race.challenger.problem)
    seconds = (race.incumbent_seconds, race.challenger_seconds)
    for arm, source, took in zip((race.incumbent, race.challenger), entry["sources"], seconds, strict=True):
        if race.rounds:
            yield problem, arm.tile, str(source), took
