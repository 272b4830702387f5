"""Hypotheses with their answers: one row a pair of tiles on one matmul, in order of time."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warptile.contracts import Decision, Identity, Price, Problem
from warptile.journal.entries import Prediction
from warptile.journal.facts import Believed, Decided, Raced
from warptile.journal.history import History
from warptile.journal.reasons import predicted
from warptile.race import decide

EVIDENCE = ("final", "confirm", "study", "pipeline")


@dataclass(frozen=True)
class Row:
    """One hypothesis. number: from 1, in order of time. ref: its own entry, or its first race's in older journals.

    races: none where the arm was out before one. written: whether it was written down before the race; otherwise the
    prediction is the two prices', as they were then.
    """

    number: int
    ref: str
    time: str
    identity: Identity
    problem: Problem
    control: str
    arm: str
    names: tuple[str, ...]
    because: str
    basis: str
    predicted: Prediction
    races: tuple[Raced, ...]
    decision: Decision
    decision_ref: str
    written: bool
    superseded: int = 0

    @property
    def run(self) -> str:
        """The run that asked it."""
        return self.ref.rpartition(":")[0]

    @property
    def ratio(self) -> float | None:
        """control / arm of the first race."""
        return self.races[0].race.ratio if self.races else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """What the intervals of all its races span."""
        if not self.races:
            return None
        return min(r.race.low for r in self.races), max(r.race.high for r in self.races)

    @property
    def floor(self) -> float:
        """The largest A/A floor of its races."""
        return max((r.race.floor for r in self.races), default=0.0)

    @property
    def answer(self) -> str:
        """ "gain" (accepted), "loss", "no difference seen", "gain, not confirmed", or the word it was out with."""
        if not self.races:
            return self.decision.reason.partition(":")[0] or self.decision.outcome
        race = self.races[0].race
        if self.decision.outcome == "accept":
            return "gain"
        if race.high < 1:
            return "loss"
        return "gain, not confirmed" if race.low > 1 + race.floor else "no difference seen"

    @property
    def foreseen(self) -> str:
        """Whether the prediction had the direction right: "yes", "no", or "" where either says nothing."""
        said, ratio = self.predicted.ratio, self.ratio
        if said is None or ratio is None or self.answer not in ("gain", "loss"):
            return ""
        return "yes" if (said > 1) == (ratio > 1) else "no"


def rows_of(history: History) -> list[Row]:
    """Every hypothesis of one device, numbered; a later row on the same arms and problem supersedes the earlier."""
    by_hypothesis: dict[str, list[Raced]] = defaultdict(list)
    loose: list[Raced] = []
    for race in history.races:
        if race.hypothesis is not None:
            by_hypothesis[race.hypothesis].append(race)
        elif race.stage in EVIDENCE:
            loose.append(race)
    decided = {d.hypothesis: d for d in history.decisions if d.hypothesis is not None}
    found = [_of(each, by_hypothesis[each.ref], decided.get(each.ref)) for each in history.hypotheses]
    found += _older(loose, history)
    found.sort(key=lambda row: (row.time, row.ref))
    last: dict[tuple[Problem, str, str], int] = {}
    for number, row in enumerate(found, 1):
        last[row.problem, row.control, row.arm] = number
    return [
        dataclasses.replace(row, number=number, superseded=newest if newest != number else 0)
        for number, row in enumerate(found, 1)
        for newest in [last[row.problem, row.control, row.arm]]
    ]


def _of(believed: Believed, races: Sequence[Raced], decided: Decided | None) -> Row:
    told = decided.decision if decided is not None else _told(races)
    return Row(
        0,
        believed.ref,
        believed.time,
        believed.identity,
        believed.problem,
        believed.control,
        believed.arm,
        believed.names,
        believed.because,
        believed.basis,
        believed.predicted,
        tuple(races),
        told,
        decided.ref if decided is not None else "",
        True,
    )


def _older(races: Sequence[Raced], history: History) -> list[Row]:
    """Races that name no hypothesis: a final and its confirmation are one row, with what the prices said then."""
    groups: dict[tuple[str, Problem, str, str], list[Raced]] = defaultdict(list)
    for race in races:
        problem = dataclasses.replace(race.race.challenger.problem, count=1)
        tiles = (race.race.incumbent.tile, race.race.challenger.tile)
        if tiles[0] != tiles[1]:
            groups[race.run, problem, *tiles].append(race)
    prices = _prices(history)
    told = {(d.run, d.problem, d.incumbent, d.challenger): d for d in history.decisions}
    rows = []
    for (run, problem, control, arm), mine in groups.items():
        decision = told.get((run, problem, control, arm))
        own = prices.get((mine[0].identity, problem, control))
        said = predicted(mine[0].price_incumbent or own, mine[0].price or prices.get((mine[0].identity, problem, arm)))
        rows.append(
            Row(
                0,
                mine[0].ref,
                mine[0].time,
                mine[0].identity,
                problem,
                control,
                arm,
                (),
                "; ".join(said.reasons),
                "price",
                said,
                tuple(mine),
                decision.decision if decision is not None else _told(mine),
                decision.ref if decision is not None else "",
                False,
            )
        )
    return rows


def _told(races: Sequence[Raced]) -> Decision:
    """What races alone conclude, where a run was stopped before it did."""
    if not races:
        return Decision("undecided", "not raced: the run ended before")
    first = races[0].race
    return decide(first, races[1].race) if len(races) > 1 else decide(first)


def _prices(history: History) -> Mapping[tuple[Identity, Problem, str], Price]:
    return {(t.identity, t.problem, t.tile): t.price for t in history.timings if t.price is not None}
