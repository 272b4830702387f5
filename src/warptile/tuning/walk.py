"""The walk of one tune over its problems: open, explore, re-check, conclude. `warptile.tune` says in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warptile.contracts import (
    CandidateRejected,
    Decision,
    Limits,
    Problem,
    Race,
)
from warptile.race import decide
from warptile.tables import Point, Validity
from warptile.tuning.budget import Budget
from warptile.tuning.notes import Notes, now
from warptile.tuning.order import Calibration, Group, Neighbours, Offer, add_neighbours, next_offers
from warptile.tuning.result import Event, Progress, Reuse, TuneRow
from warptile.tuning.stand import Proof, Stand

BATCH = 3
PATIENCE = 4
GAIN = 0.98
FEWEST_ROUNDS = 2
PROVE_DEADLINE_S = 90.0
SCREEN_S = 2.0
FINAL_S = (1.0, 8.0)
FINAL_ROUNDS = 40
RECHECK_S = 1.5
RECHECK_ROUNDS = 12


@dataclass
class Standing:
    """What is known of one problem so far. seconds: of screened tiles, on one scale."""

    group: Group
    stock: str | None
    stock_note: str
    seconds: dict[str, float]
    kept: Point | None = None
    kept_why: str = ""
    reuse: Reuse = "new"

    @property
    def best(self) -> tuple[str, float] | None:
        """The fastest screened tile and its seconds."""
        return min(self.seconds.items(), key=lambda each: (each[1], each[0]), default=None)


class Walk:
    """Steps of a tune on one stand; every result is written down before the next step begins."""

    def __init__(
        self,
        stand: Stand,
        notes: Notes,
        groups: Sequence[Group],
        limits: Limits,
        proof_version: int,
        budget: Budget,
        neighbours: Neighbours,
        progress: Progress | None,
        seed: int,
    ) -> None:
        self.stand, self.notes, self.groups, self.limits = stand, notes, groups, limits
        self.budget, self.seed = budget, seed
        self.said: list[str] = []
        self._proof_version, self._neighbours, self._progress = proof_version, neighbours, progress
        self._proved: dict[str, Proof] = {}
        self._calibration = Calibration()
        self.standings = {p: self._standing(group, p) for group in groups for p in group.problems}
        for group in groups:
            group.taken.update(t for t, offer in group.offers.items() if self._screened_everywhere(offer))

    def _standing(self, group: Group, problem: Problem) -> Standing:
        stock = group.stock.get(problem)
        note = "" if stock else "no static table has a tile for it"
        standing = Standing(group, stock, note, self.notes.recall.screened(problem, self.notes.source_of))
        if standing.seconds:
            standing.reuse = "resumed"
        served = self.notes.table.lookup(problem, group.layout, self._proof_version)
        if served is not None and served.point.m == problem.m:
            standing.kept, standing.kept_why = served.point, served.why
        return standing

    def _screened_everywhere(self, offer: Offer) -> bool:
        return all(offer.text in self.standings[problem].seconds for problem in offer.prices)

    def settled(self, problem: Problem) -> bool:
        """Whether the table holds a valid winner for exactly this problem."""
        standing = self.standings[problem]
        return standing.kept is not None and not standing.kept_why

    def tell(self, stage: str, text: str) -> None:
        """Report a step to whoever watches."""
        if self._progress is not None:
            best = {
                p.text(): (s.best[1], s.seconds.get(s.stock or "", 0.0)) for p, s in self.standings.items() if s.best
            }
            self._progress(Event(stage, text, self.budget.spent(), self.budget.left(), self.notes.tried, best))

    # -- proving ----------------------------------------------------------------------------------------------

    def prove(self, text: str, problems: Sequence[Problem], again: bool = False) -> bool:
        """Whether a tile is right on these problems; again: even where the journal knows. Rejections are recorded."""
        by_source: dict[str, list[Problem]] = {}
        for problem in problems:
            by_source.setdefault(self.notes.source_of(text, problem), []).append(problem)
        return all(self._prove(text, source, members, again) for source, members in by_source.items())

    def _prove(self, text: str, source: str, problems: list[Problem], again: bool) -> bool:
        ks = sorted({p.k for p in problems})
        known = None if again else self.notes.recall.proof(source, ks)
        if known is None:
            if not again and any(self.notes.recall.rejection(source, p) for p in problems):
                return False
            self.tell("prove", f"{problems[0].format}  {text}")
            one_a_k = [next(p for p in problems if p.k == k) for k in ks]
            try:
                with self.budget.step("prove"):
                    known = self.stand.prove(text, one_a_k, self.seed, PROVE_DEADLINE_S)
            except CandidateRejected as error:
                for problem in problems:
                    self.notes.reject(text, problem, error.outcome, str(error))
                return False
            self.notes.proof(text, problems[0], ks, known)
        self._proved[source] = known
        return known.verdict.right

    def _ids(self, problem: Problem, tiles: Sequence[str]) -> dict[str, int]:
        return {t: self._proved[self.notes.source_of(t, problem)].verdict.binary for t in tiles}

    # -- exploring --------------------------------------------------------------------------------------------

    def open(self, group: Group) -> None:
        """Prove the stock and kept tiles of a group; a stock tile that is out stops being the incumbent."""
        for text in dict.fromkeys(group.stock[p] for p in group.problems if p in group.stock):
            members = [p for p in group.problems if group.stock.get(p) == text]
            group.taken.add(text)
            if not self.prove(text, members):
                self.said.append(f"stock tile {text} was rejected for {group.format}; the first right tile stands in")
                for problem in members:
                    standing = self.standings[problem]
                    standing.stock, standing.stock_note = None, f"{text} was rejected"
                    standing.seconds.pop(text, None)
        for problem in group.problems:
            standing = self.standings[problem]
            for text in [t for t in standing.seconds if t != standing.stock]:
                if not self.prove(text, [problem]):
                    del standing.seconds[text]
            kept = standing.kept
            if kept is not None and kept.tile != standing.stock:
                group.taken.add(kept.tile)
                if not self._is_valid(kept.tile, problem) or not self.prove(kept.tile, [problem], again=True):
                    self.said.append(f"{problem.text()}: the table's {kept.tile} is no longer right; it is replaced")
                    standing.kept = None
                    standing.seconds.pop(kept.tile, None)

    def _is_valid(self, text: str, problem: Problem) -> bool:
        return self.notes.source_of(text, problem) != ""

    def explore(self, group: Group) -> None:
        """One batch: prove the next tiles, then screen them with the best so far on every problem of the group."""
        offers = next_offers(group, BATCH, self._bests(group), self._calibration)
        with self.budget.step("batch"):
            right = []
            for offer in offers:
                group.taken.add(offer.text)
                if offer.prices and self.prove(offer.text, list(offer.prices)):
                    right.append(offer)
            gained = [problem for problem in group.problems if self._screen(problem, right)]
        group.rounds += 1
        group.misses = 0 if gained else group.misses + 1
        if gained:
            heaviest = max(gained, key=lambda p: group.counts[p] * p.flops)
            best = self.standings[heaviest].best
            if best is not None and best[0] in group.offers:
                add_neighbours(group, best[0], heaviest, self.limits, self._neighbours)

    def _bests(self, group: Group) -> dict[Problem, tuple[str, float]]:
        return {p: best for p in group.problems if (best := self.standings[p].best) is not None}

    def _screen(self, problem: Problem, offers: Sequence[Offer]) -> bool:
        """Whether one of the offers is faster than the best so far; the first screening measures the stock too."""
        standing = self.standings[problem]
        before = standing.best
        new = [o.text for o in offers if problem in o.prices]
        held = [before[0]] if before else []
        held += [
            t for t in (standing.stock, standing.kept.tile if standing.kept else None) if t and t not in standing.seconds
        ]
        arms = list(dict.fromkeys([*held, *(t for t in new if t not in standing.seconds)]))
        if all(t in standing.seconds for t in arms):
            return False
        self._measure(problem, arms)
        after = standing.best
        if after is None:
            return False
        return before is None or (after[0] != before[0] and after[1] < GAIN * standing.seconds.get(before[0], after[1]))

    def _measure(self, problem: Problem, arms: Sequence[str]) -> None:
        """Screen arms on one problem; where the whole is lost, each alone beside the first, so that one is to blame."""
        standing = self.standings[problem]
        self.tell("race", f"{problem.text()}  {len(arms)} tiles")
        try:
            with self.budget.step("screen"):
                screening = self.stand.screen(
                    problem, self._ids(problem, arms), SCREEN_S, self.seed, self._screen_deadline()
                )
        except CandidateRejected as error:
            if len(arms) == 1:
                self._drop(problem, arms[0], error)
                return
            for arm in arms:
                self._measure(problem, [arm])
            return
        self.notes.screening(problem, screening)
        measured = {s.arm.tile: s.seconds for s in (*screening.survivors, *screening.dropped)}
        shared = [t for t in measured if t in standing.seconds]
        if shared:
            scale = sum(measured[t] / standing.seconds[t] for t in shared) / len(shared)
            standing.seconds = {t: s * scale for t, s in standing.seconds.items()}
        standing.seconds.update(measured)
        for text, seconds in measured.items():
            price = self.notes.price(text, problem)
            if price is not None:
                self._calibration.add(text.split(":", 1)[0], price.seconds, seconds)

    def _drop(self, problem: Problem, text: str, error: CandidateRejected) -> None:
        standing = self.standings[problem]
        self.notes.reject(text, problem, error.outcome, str(error))
        standing.seconds.pop(text, None)
        if text == standing.stock:
            standing.stock, standing.stock_note = None, f"{text} was rejected: {error}"
            self.said.append(f"{problem.text()}: stock tile {text} was rejected: {error}")

    def _screen_deadline(self) -> float:
        return 30.0 + 10 * SCREEN_S

    def next_group(self, open_groups: Sequence[Group]) -> Group | None:
        """The group whose next batch promises most; None where time or candidates are used up.

        Its share of the time of one pass, over the batches it had; a group with fewer than two goes first. The time
        the final races need is kept back.
        """
        if self.budget.left() < self._reserve() + self.budget.expect("batch", 10.0):
            return None
        going = [g for g in open_groups if set(g.offers) - g.taken and g.misses < PATIENCE]
        fresh = [g for g in going if g.rounds < FEWEST_ROUNDS]
        return max(fresh or going, key=lambda g: self._weight(g) / (1 + g.rounds), default=None)

    def _weight(self, group: Group) -> float:
        bests = self._bests(group)
        return sum(group.counts[p] * (bests[p][1] if p in bests else p.flops / 1e9) for p in group.problems)

    def _reserve(self) -> float:
        waiting = sum(1 for s in self.standings.values() if s.seconds)
        return 2.0 + waiting * self.budget.expect("final", 2.5 * self.budget.expect("screen", SCREEN_S))

    # -- concluding -------------------------------------------------------------------------------------------

    def recheck(self, problem: Problem) -> TuneRow | None:
        """The row of a settled problem: winner proved again, raced once more; None where it lost and must be searched."""
        standing = self.standings[problem]
        kept = standing.kept
        if kept is None:
            return None
        self.tell("recheck", f"{problem.text()}  {kept.tile}")
        if not self._is_valid(kept.tile, problem) or not self.prove(kept.tile, [problem], again=True):
            self.said.append(f"{problem.text()}: the table's {kept.tile} failed its proof; it is searched anew")
            standing.kept = None
            return None
        if kept.tile == kept.stock or standing.stock != kept.stock or not self.prove(kept.stock, [problem]):
            return _row_of(problem, kept, standing, None, f"proved again; {kept.reason}")
        try:
            race = self._race("recheck", problem, kept.stock, kept.tile, RECHECK_S, RECHECK_ROUNDS, self.seed + 2)
        except CandidateRejected as error:
            self._drop(problem, kept.tile, error)
            standing.kept = None
            return None
        if race.high <= 1:
            self.said.append(f"{problem.text()}: the table's {kept.tile} is no longer faster; it is searched anew")
            self._distrust(problem)
            return None
        held = "still faster" if race.low > 1 else "this short race alone does not decide"
        reason = f"proved again; {race.ratio:.2f}x [{race.low:.2f}, {race.high:.2f}] in {race.rounds} rounds, {held}"
        return _row_of(problem, kept, standing, race, reason)

    def _distrust(self, problem: Problem) -> None:
        """Forget what table and journal said of a problem's speeds: the device shows others now."""
        standing = self.standings[problem]
        standing.kept, standing.reuse = None, "new"
        standing.seconds.clear()
        standing.group.taken.difference_update(t for t, o in standing.group.offers.items() if problem in o.prices)

    def conclude(self, problem: Problem, remaining: int) -> TuneRow | None:
        """Race the best tile against the stock and keep the winner; None where nothing was measured.

        remaining: problems still to conclude, this one included; they share the time that is left.
        """
        standing = self.standings[problem]
        best = standing.best
        if best is None:
            return None
        with self.budget.step("final"):
            if standing.stock is None:
                told = Decision("accept", f"the fastest right tile screened; {standing.stock_note}")
                return self._keep(problem, best[0], best[0], None, told, best[1])
            others = {t: s for t, s in standing.seconds.items() if t != standing.stock}
            if not others:
                told = Decision("reject", "no other tile was right and fast enough to race")
                return self._keep(problem, standing.stock, standing.stock, None, told, best[1])
            challenger = min(others, key=lambda t: (others[t], t))
            self.tell("decide", f"{problem.text()}  {challenger} against stock")
            seconds = min(FINAL_S[1], max(FINAL_S[0], self.budget.left() / (2.2 * max(1, remaining))))
            try:
                race, told = self._final(problem, standing.stock, challenger, seconds)
            except CandidateRejected as error:
                self._drop(problem, challenger, error)
                return self.conclude(problem, remaining)
            winner = challenger if told.outcome == "accept" else standing.stock
            return self._keep(problem, winner, challenger, race, told, 0.0)

    def _final(self, problem: Problem, stock: str, challenger: str, seconds: float) -> tuple[Race, Decision]:
        race = self._race("final", problem, stock, challenger, seconds, FINAL_ROUNDS, self.seed)
        told = decide(race)
        if told.outcome == "undecided" and race.low > 1 + race.floor:
            confirm = self._race("confirm", problem, stock, challenger, seconds, FINAL_ROUNDS, self.seed + 1)
            told = decide(race, confirm)
        return race, told

    def _race(
        self, stage: str, problem: Problem, stock: str, challenger: str, seconds: float, rounds: int, seed: int
    ) -> Race:
        ids = self._ids(problem, [stock, challenger])
        race = self.stand.race(problem, stock, challenger, ids, seconds, rounds, seed, 30.0 + 10 * seconds)
        self.notes.race(stage, race)
        return race

    def _keep(
        self, problem: Problem, winner: str, challenger: str, race: Race | None, told: Decision, screened: float
    ) -> TuneRow:
        standing = self.standings[problem]
        won = race is not None and winner == challenger
        proof = self._proved[self.notes.source_of(winner, problem)]
        identity = self.notes.identity
        point = Point(
            m=problem.m,
            tile=winner,
            stock=standing.stock or "",
            seconds=screened if race is None else race.challenger_seconds if won else race.incumbent_seconds,
            stock_seconds=screened if race is None else race.incumbent_seconds,
            ratio=race.ratio if race is not None and won else 1.0,
            low=race.low if race is not None and won else 1.0,
            high=race.high if race is not None and won else 1.0,
            floor=race.floor if race is not None else 0.0,
            outcome=told.outcome,
            reason=told.reason,
            validity=Validity(identity.driver, identity.compiler, proof.artefact, self._proof_version),
            measured=now(),
            run=self.notes.journal.run,
        )
        self.notes.decide(problem, standing.group.layout, challenger, point)
        return _row_of(problem, point, standing, race, told.reason)


def _row_of(problem: Problem, point: Point, standing: Standing, race: Race | None, reason: str) -> TuneRow:
    rechecked = race is not None and point is standing.kept
    return TuneRow(
        problem=problem,
        stock=standing.stock,
        stock_seconds=point.stock_seconds if standing.stock else None,
        stock_note=standing.stock_note,
        tile=point.tile,
        seconds=point.seconds,
        ratio=point.ratio,
        low=point.low,
        high=point.high,
        floor=point.floor,
        decision=Decision(point.outcome, reason),
        race=race,
        reuse="rechecked" if rechecked or point is standing.kept else standing.reuse,
    )
