"""The state of one tune: what is known of each problem, and the steps exploring and concluding share."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from warptile.contracts import CandidateRejected, Limits, Problem, Wrong
from warptile.proof.version import PROOF_VERSION
from warptile.race.statistics import FEWEST_ROUNDS
from warptile.tables import Point
from warptile.tuning.budget import Budget
from warptile.tuning.notes import Notes
from warptile.tuning.order import Calibration, Group, Offer
from warptile.tuning.result import Event, Progress, Reuse, TuneRow
from warptile.tuning.stand import Proof, Stand

PROVE_DEADLINE_S = 90.0
LEAST_DEADLINE_S = 5.0
AHEAD_DEADLINE_S = 30.0
LEAST_STEP_S = 1.0


@dataclass
class Standing:
    """What is known of one problem so far.

    stock: the static table's tile, None where there is none or it was rejected (stock_note says why). seconds: of
    screened tiles, on one scale. kept: the table's point for exactly this m; stale: why it does not hold, "" where it
    does.
    """

    group: Group
    stock: str | None
    stock_note: str
    seconds: dict[str, float]
    kept: Point | None = None
    stale: str = ""
    reuse: Reuse = "new"

    @property
    def best(self) -> tuple[str, float] | None:
        """The fastest screened tile and its seconds."""
        return min(self.seconds.items(), key=lambda each: (each[1], each[0]), default=None)


class State:
    """One tune on one stand. rows: problems concluded; said: what a person should know of the way, one line each;
    watched: what a checked build found, by source.

    Every result is written to `notes` before the next step begins.
    """

    def __init__(
        self,
        stand: Stand,
        notes: Notes,
        groups: Sequence[Group],
        limits: Limits,
        budget: Budget,
        progress: Progress | None = None,
        seed: int = 0,
    ) -> None:
        self.stand, self.notes, self.groups, self.limits = stand, notes, groups, limits
        self.budget, self.seed = budget, seed
        self.rows: dict[Problem, TuneRow] = {}
        self.said: list[str] = []
        self.watched: dict[str, Wrong | None] = {}
        self.why_not = ""
        self.calibration = Calibration()
        self._progress = progress
        self._proved: dict[str, Proof] = {}
        self.standings = {p: self._standing(group, p) for group in groups for p in group.problems}
        for group in groups:
            group.taken.update(t for t, offer in group.offers.items() if self._screened_everywhere(offer))

    def _standing(self, group: Group, problem: Problem) -> Standing:
        stock = group.stock.get(problem)
        note = "" if stock else "no static table has a tile for it"
        standing = Standing(group, stock, note, self.notes.recall.screened(problem, self.notes.source_of))
        if standing.seconds:
            standing.reuse = "resumed"
        served = self.notes.table.lookup(problem, group.layout, PROOF_VERSION)
        if served is not None and served.point.m == problem.m:
            standing.kept, standing.stale = served.point, served.why
        return standing

    def _screened_everywhere(self, offer: Offer) -> bool:
        return all(offer.text in self.standings[problem].seconds for problem in offer.prices)

    def settled(self) -> list[Problem]:
        """Problems for which the table holds a valid decision that had enough rounds."""

        def decided(point: Point) -> bool:
            return point.outcome != "undecided" or point.rounds >= FEWEST_ROUNDS

        return [p for p, s in self.standings.items() if s.kept is not None and not s.stale and decided(s.kept)]

    def waiting(self, group: Group | None = None) -> list[Problem]:
        """Problems without a row, of one group or of all, those that take most of a pass first."""
        problems = self.standings if group is None else group.problems
        return sorted((p for p in problems if p not in self.rows), key=self._weight, reverse=True)

    def _weight(self, problem: Problem) -> float:
        standing = self.standings[problem]
        seconds = standing.best[1] if standing.best else problem.flops / 1e9
        return standing.group.counts[problem] * seconds

    def tell(self, stage: str, text: str) -> None:
        """Report a step to whoever watches."""
        if self._progress is not None:
            best = {
                p.text(): (s.best[1], s.seconds.get(s.stock or "", 0.0)) for p, s in self.standings.items() if s.best
            }
            self._progress(Event(stage, text, self.budget.spent(), self.budget.left(), self.notes.tried, best))

    def ahead(self, wanted: Sequence[tuple[str, Sequence[Problem]]]) -> None:
        """Have tiles compiled side by side that are proved next on these problems; what fails there fails in its proof.

        Those the journal knows, and a single one, are left out.
        """
        new: dict[str, tuple[str, Problem]] = {}
        for text, problems in wanted:
            for problem in problems[:1]:
                source = self.notes.source_of(text, problem)
                if source and source not in self._proved and not self.notes.recall.proved(source):
                    new.setdefault(source, (text, problem))
        if len(new) < 2 or self.budget.left() < LEAST_STEP_S:
            return
        with contextlib.suppress(CandidateRejected):
            self.stand.ahead(list(new.values()), clamp(self.budget.left(), (LEAST_DEADLINE_S, AHEAD_DEADLINE_S)))

    def prove(self, text: str, problems: Sequence[Problem], again: bool = False) -> bool:
        """Whether a tile is right on these problems; again: asked anew even where the journal knows.

        Problems whose sources are equal share one proof. Rejections are recorded, and `why_not` holds the last one's
        line. A proof may take 90 s, or what is left of the budget where that is less.
        """
        by_source: dict[str, list[Problem]] = {}
        for problem in problems:
            by_source.setdefault(self.notes.source_of(text, problem), []).append(problem)
        self.why_not = "it is no valid tile here"
        return "" not in by_source and all(
            self._prove(text, source, members, again) for source, members in by_source.items()
        )

    def _prove(self, text: str, source: str, problems: list[Problem], again: bool) -> bool:
        ks = sorted({p.k for p in problems})
        known = None if again else self.notes.recall.proof(source, ks)
        if known is None:
            deadline = clamp(self.budget.left(), (LEAST_DEADLINE_S, PROVE_DEADLINE_S))
            for problem in () if again else problems:
                if (reason := self.notes.recall.rejection(source, problem, deadline)) is not None:
                    self.why_not = reason
                    return False
            self.tell("prove", f"{problems[0].format}  {text}")
            one_a_k = [next(p for p in problems if p.k == k) for k in ks]
            try:
                known = self.stand.prove(text, one_a_k, self.seed, deadline)
            except CandidateRejected as error:
                self.why_not = f"{error.outcome}: {error}"
                for problem in problems:
                    self.notes.reject(text, problem, error, deadline)
                return False
            self.notes.proof(text, problems[0], ks, known)
        self._proved[source] = known
        self.why_not = f"its proof failed: {known.verdict.failed}: {known.verdict.detail}"
        return known.verdict.right

    def proof(self, text: str, problem: Problem) -> Proof:
        """What was proved of a tile on a problem in this run. Raises KeyError where nothing was."""
        return self._proved[self.notes.source_of(text, problem)]

    def ids(self, problem: Problem, tiles: Sequence[str]) -> dict[str, int]:
        """Ids of the proved binaries by tile text."""
        return {text: self.proof(text, problem).verdict.binary for text in tiles}

    def guess(self, problem: Problem, text: str) -> float:
        """Seconds a tile may take: screened, or its price on the device's scale; 0 where it has none."""
        standing = self.standings[problem]
        if text in standing.seconds:
            return standing.seconds[text]
        price = self.notes.price(text, problem)
        return self.calibration.factor(text.split(":", 1)[0]) * price.seconds if price is not None else 0.0

    def drop(self, problem: Problem, text: str, error: CandidateRejected, deadline: float) -> None:
        """A proved tile failed while it was timed, in a step that was given `deadline` seconds."""
        standing = self.standings[problem]
        self.notes.reject(text, problem, error, deadline)
        standing.seconds.pop(text, None)
        if text == standing.stock:
            self.without_stock(problem, str(error))

    def without_stock(self, problem: Problem, reason: str) -> None:
        """The stock tile is out: the fastest right tile stands in for it, and a person is told."""
        standing = self.standings[problem]
        self.said.append(f"{problem.text()}: stock tile {standing.stock} was rejected: {reason}")
        standing.stock_note = f"{standing.stock} was rejected"
        standing.seconds.pop(standing.stock or "", None)
        standing.stock = None

    def distrust(self, problem: Problem, reason: str) -> None:
        """Forget what table and journal said of a problem's speeds: the device shows others now."""
        standing = self.standings[problem]
        kept = standing.kept.tile if standing.kept else ""
        self.said.append(f"{problem.text()}: the table's {kept} {reason}; it is searched anew")
        standing.kept, standing.reuse = None, "new"
        standing.seconds.clear()
        standing.group.taken.difference_update(t for t, o in standing.group.offers.items() if problem in o.prices)


def clamp(value: float, bounds: tuple[float, float]) -> float:
    """The value, or the bound it passes."""
    return min(bounds[1], max(bounds[0], value))
