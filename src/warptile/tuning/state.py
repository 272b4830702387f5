"""The state of one tune: what is known of each problem, and the steps exploring and concluding share."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

import numpy as np

from warptile.contracts import CandidateRejected, Limits, Problem
from warptile.proof.version import PROOF_VERSION
from warptile.race.bench import UNPROVED
from warptile.race.statistics import FEWEST_ROUNDS
from warptile.search import Correction, Observation, Points
from warptile.search import Point as TilePoint
from warptile.tables import Point
from warptile.tuning.budget import Budget
from warptile.tuning.history import History, point_of
from warptile.tuning.notes import Expected, Notes
from warptile.tuning.order import Group, Offer, sitting_of
from warptile.tuning.result import Event, Progress, TuneRow
from warptile.tuning.scale import joined
from warptile.tuning.stand import Proof, Stand
from warptile.tuning.standing import Standing

PROVE_DEADLINE_S = 90.0
LEAST_DEADLINE_S = 5.0
AHEAD_DEADLINE_S = 60.0
LEAST_STEP_S = 1.0


class State:
    """One tune on one stand. rows: problems concluded; said: what a person should know of the way, one line each.
    width: how many tiles the stand compiles side by side. watched: sources whose instrumented builds ran. past:
    observations of earlier runs to learn from.

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
        past: Sequence[Observation] = (),
    ) -> None:
        self.stand, self.notes, self.groups, self.limits = stand, notes, groups, limits
        self.budget, self.seed = budget, seed
        self.rows: dict[Problem, TuneRow] = {}
        self.said: list[str] = []
        self.watched: set[str] = set()
        self.why_not = ""
        self.width = 1
        self._points: dict[tuple[str, Problem], TilePoint | None] = {}
        self._learned: dict[tuple[str, int], Correction] = {}
        self._progress = progress
        self._proved: dict[str, Proof] = {}
        self.standings = {p: self._standing(group, p) for group in groups for p in group.problems}
        known = {(p, t) for p, s in self.standings.items() for t in s.timed}
        fresh = [o for o in past if (o.point.problem, o.point.tile.text()) not in known]
        self.history = History(fresh, limits)
        for group in groups:
            group.taken.update(t for t, offer in group.offers.items() if self._screened_everywhere(offer))

    def _standing(self, group: Group, problem: Problem) -> Standing:
        stock = group.stock.get(problem)
        note = "" if stock else "no static table has a tile for it"
        timed = self.notes.recall.screened(problem, self.notes.source_of)
        proved = {t for t in timed if self.notes.recall.proved(self.notes.source_of(t, problem))}
        standing = Standing(group, stock, note, timed, proved)
        if timed:
            standing.reuse = "resumed"
        served = self.notes.table.lookup(problem, group.layout, PROOF_VERSION)
        if served is not None and served.point.m == problem.m:
            standing.kept, standing.stale = served.point, served.why
        return standing

    def _screened_everywhere(self, offer: Offer) -> bool:
        return all(offer.text in self.standings[problem].timed for problem in offer.prices)

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

        Those the journal knows, and a single one, are left out. A source that depends on k is compiled for each.
        """
        new: dict[str, tuple[str, Problem]] = {}
        for text, problems in wanted:
            for problem in problems:
                source = self.notes.source_of(text, problem)
                if source and source not in self._proved and not self.notes.recall.proved(source):
                    new.setdefault(source, (text, problem))
        if len(new) < 2 or self.budget.left() < LEAST_STEP_S:
            return
        with contextlib.suppress(CandidateRejected):
            deadline = clamp(self.budget.left(), (LEAST_DEADLINE_S, AHEAD_DEADLINE_S))
            self.width = max(self.width, self.stand.ahead(list(new.values()), deadline))

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
                with self.budget.step("prove"):
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
        """Ids of the proved binaries by tile text. Raises KeyError where one was not proved."""
        return {text: self.proof(text, problem).verdict.binary for text in tiles}

    def ids_so_far(self, problem: Problem, tiles: Sequence[str]) -> dict[str, int]:
        """As `ids`, with `UNPROVED` for tiles that were not proved yet."""
        known = {text: self._proved.get(self.notes.source_of(text, problem)) for text in tiles}
        return {text: UNPROVED if proof is None else proof.verdict.binary for text, proof in known.items()}

    def refused(self, text: str, problem: Problem) -> bool:
        """Whether a tile is known to be wrong, or to have failed for good; what is known to be right is noted."""
        source = self.notes.source_of(text, problem)
        known = self._proved.get(source) or self.notes.recall.proof(source, [problem.k])
        if known is not None:
            self._proved[source] = known
            return not known.verdict.right
        deadline = clamp(self.budget.left(), (LEAST_DEADLINE_S, PROVE_DEADLINE_S))
        return not source or self.notes.recall.rejection(source, problem, deadline) is not None

    def _right(self, text: str, problem: Problem) -> bool:
        known = self._proved.get(self.notes.source_of(text, problem))
        return known is not None and known.verdict.right

    def point(self, text: str, problem: Problem) -> TilePoint | None:
        """A tile on a problem with its price; None where it is not valid."""
        key = (text, problem)
        if key not in self._points:
            self._points[key] = point_of(text, problem, self.limits, self.notes.parse)
        return self._points[key]

    def correction(self, group: Group) -> Correction:
        """What is known of a group's tiles: what was measured in it and in groups like it, in this run and before."""
        key = (group.format, group.m)
        if key not in self._learned:
            own = [
                Observation(point, seconds, sitting_of(problem))
                for problem, standing in self.standings.items()
                for text, seconds in standing.timed.items()
                if (point := self.point(text, problem)) is not None
            ]
            self._learned[key] = self.history.correction(group.problems[0], own)
        return self._learned[key]

    def learn(self, problem: Problem, measured: Mapping[str, float], thorough: bool = False) -> None:
        """Screened seconds of tiles join what is known of a problem; thorough: as in `joined`."""
        standing = self.standings[problem]
        standing.timed = joined(standing.timed, measured, thorough)
        standing.proved.update(text for text in measured if self._right(text, problem))
        self._learned.clear()

    def expect(self, problem: Problem, tiles: Sequence[str]) -> None:
        """Note what the corrected price says of tiles that were not measured yet."""
        standing = self.standings[problem]
        points = {t: self.point(t, problem) for t in tiles if t not in standing.timed and t not in standing.expected}
        known = [(t, p) for t, p in points.items() if p is not None]
        if known:
            estimate = self.correction(standing.group).of(
                Points([p for _, p in known], self.limits), sitting_of(problem)
            )
            found = zip(known, np.exp(estimate.log_seconds), estimate.deviation, strict=True)
            standing.expected |= {text: Expected(float(s), float(d)) for (text, _), s, d in found}

    def guess(self, problem: Problem, text: str) -> float:
        """Seconds a tile may take: screened, or what is expected of it; 0 where it has no price."""
        standing = self.standings[problem]
        self.expect(problem, [text])
        expected = standing.expected.get(text)
        return standing.timed.get(text, expected.seconds if expected is not None else 0.0)

    def searched(self) -> list[dict[str, object]]:
        """How much of each problem's space was looked at: tiles considered, refused on paper, screened, proved."""
        found: list[dict[str, object]] = []
        for problem, standing in self.standings.items():
            offers = standing.group.offers
            considered = standing.group.considered.get(problem, 0)
            valid = sum(problem in offer.prices for offer in offers.values())
            found.append(
                {
                    "problem": problem,
                    "considered": max(considered, valid),
                    "refused": max(0, considered - valid),
                    "screened": len(standing.timed),
                    "proved": len(standing.seconds),
                }
            )
        return found

    def drop(self, problem: Problem, text: str, error: CandidateRejected, deadline: float) -> None:
        """A proved tile failed while it was timed, in a step that was given `deadline` seconds."""
        standing = self.standings[problem]
        self.notes.reject(text, problem, error, deadline)
        standing.drop(text)
        if text == standing.stock:
            self.without_stock(problem, str(error))

    def without_stock(self, problem: Problem, reason: str) -> None:
        """The stock tile is out: the fastest right tile stands in for it, and a person is told."""
        standing = self.standings[problem]
        self.said.append(f"{problem.text()}: stock tile {standing.stock} was rejected: {reason}")
        standing.stock_note = f"{standing.stock} was rejected"
        standing.drop(standing.stock or "")
        standing.stock = None

    def distrust(self, problem: Problem, reason: str) -> None:
        """Forget what table and journal said of a problem's speeds: the device shows others now."""
        standing = self.standings[problem]
        kept = standing.kept.tile if standing.kept else ""
        self.said.append(f"{problem.text()}: the table's {kept} {reason}; it is searched anew")
        standing.kept, standing.reuse = None, "new"
        standing.timed.clear()
        standing.proved.clear()
        standing.group.taken.difference_update(t for t, o in standing.group.offers.items() if problem in o.prices)


def clamp(value: float, bounds: tuple[float, float]) -> float:
    """The value, or the bound it passes."""
    return min(bounds[1], max(bounds[0], value))
