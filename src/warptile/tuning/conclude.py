"""Concluding: re-check what the table holds; race the best tile against the stock, decide, keep."""

from __future__ import annotations

from dataclasses import dataclass

from warptile.contracts import CandidateRejected, Decision, Problem, Race, Wrong
from warptile.journal import Prediction
from warptile.journal.reasons import expectation, predicted
from warptile.proof.version import PROOF_VERSION
from warptile.race import decide
from warptile.tables import Point, Validity
from warptile.tuning.notes import now
from warptile.tuning.result import TuneRow
from warptile.tuning.state import LEAST_STEP_S, State, clamp

RACE_S = (0.5, 20.0)
ROUNDS = 40
"""Rounds that a final race is taken to need when time for it is kept back."""
CLEAR_ROUNDS = 12
CLEAR_RATIO = 2.0
FIRST_ROUNDS = 12
MOST_ROUNDS = 12288
"""A final race is looked at after 12 rounds, after 24, and so on, and ends here: 11 looks."""
RECHECK_ROUNDS = 12
OVERHEAD_S = 1.0
CORRECTED = "corrected price"
WATCH_DEADLINE_S = 30.0
WATCH_S = 2.0
NO_ROOM = "the budget has no room for instrumented runs of every winner: warptile prove --level full makes them"
WATCH_SHARE = 0.1
"""Of the budget, for the checked builds of all winners; seconds of the first."""


@dataclass(frozen=True)
class Raced:
    """A race and what it decided. hypothesis, races: references of the journal's entries behind it."""

    race: Race
    told: Decision
    hypothesis: str
    races: tuple[str, ...]


def recheck(state: State, problem: Problem) -> None:
    """Prove the table's tile again and race it once more, shortly, against the stock it won against.

    Where it fails, compiles to another binary than the one measured, or is slower than the stock, the problem waits to
    be searched anew; so it does where it never raced the stock tile of now. Where the stock had stayed, proving it
    again is all.
    """
    standing = state.standings[problem]
    kept = standing.kept
    if kept is None:
        return
    state.tell("recheck", f"{problem.text()}  {kept.tile}")
    if not state.prove(kept.tile, [problem], again=True):
        state.distrust(problem, f"is no longer right ({state.why_not})")
        return
    if state.proof(kept.tile, problem).artefact != kept.validity.artefact:
        state.distrust(problem, "was measured as another binary")
        return
    if standing.stock is not None and standing.stock != kept.stock:
        if state.prove(standing.stock, [problem]):
            state.said.append(f"{problem.text()}: the table's {kept.tile} did not race the stock tile; it does now")
            return
        state.without_stock(problem, state.why_not)
    race, reason = None, f"proved again; {kept.reason}"
    if kept.tile != kept.stock and standing.stock == kept.stock and state.prove(kept.stock, [problem]):
        seconds = clamp(1.5 * RECHECK_ROUNDS * (2 * kept.stock_seconds + kept.seconds), RACE_S)
        try:
            race, _ = _race(state, "recheck", problem, kept.stock, kept.tile, seconds, RECHECK_ROUNDS, state.seed + 2)
        except CandidateRejected as error:
            state.distrust(problem, f"failed in a race ({error})")
            return
        if race.high <= 1:
            state.distrust(problem, "is no longer faster")
            return
        held = "still faster" if race.low > 1 else "this short race alone does not decide"
        reason = f"proved again; {race.ratio:.2f}x [{race.low:.2f}, {race.high:.2f}] in {race.rounds} rounds, {held}"
    standing.reuse = "rechecked"
    state.rows[problem] = _row(state, problem, kept, race, reason)


def reserve(state: State) -> float:
    """Seconds the final races still to come will take, each raced twice."""
    # One proof each, of what a play-off finds.
    proofs = len(state.waiting()) * state.budget.expect("prove", 0.5)
    return 2.0 + proofs + sum(2 * (_final_seconds(state, p) + OVERHEAD_S) for p in state.waiting())


def _final_seconds(state: State, problem: Problem) -> float:
    """Seconds for the rounds and a warm-up of a race of the best other tile against the stock, which runs twice."""
    stock, best = _screened(state, problem)
    return clamp(1.25 * _rounds(state, problem) * (2 * stock + best), RACE_S)


def _rounds(state: State, problem: Problem) -> int:
    """How many rounds a final race is taken to need: 12 where the screening showed twice the speed, else 40."""
    stock, best = _screened(state, problem)
    return CLEAR_ROUNDS if stock > CLEAR_RATIO * best else ROUNDS


def _most_seconds(state: State, problem: Problem) -> float:
    """Seconds a final race may take: what it is taken to need, and half its share of what nobody is taken to need.

    Half, since a confirmation may follow. A race ends as soon as it is settled, so few take as long.
    """
    spare = max(0.0, state.budget.left() - reserve(state)) / max(1, len(state.waiting()))
    return clamp(_final_seconds(state, problem) + 0.5 * spare, RACE_S)


def _screened(state: State, problem: Problem) -> tuple[float, float]:
    """Screened seconds of the stock tile and of the best other one; 0 where there is none."""
    standing = state.standings[problem]
    best = min((s for t, s in standing.seconds.items() if t != standing.stock), default=0.0)
    return (standing.seconds.get(standing.stock, best) if standing.stock else 0.0), best


def conclude(state: State, problem: Problem) -> None:
    """Race the best tile against the incumbent and keep the winner; a problem of which nothing was measured waits on.

    The incumbent is the table's tile where it holds one that is still right, else the stock; a tile that replaces the
    table's must also beat that one. Where no stock tile is right, the fastest tile screened is kept. Where the budget
    has ended, the stock stays, undecided, and the next run races.
    """
    standing = state.standings[problem]
    challenger = _challenger(state, problem)
    if standing.stock is None:
        if standing.best is not None:
            told = Decision("accept", f"the fastest right tile screened; {standing.stock_note}")
            _keep(state, problem, standing.best[0], None, told)
    elif challenger is None or state.budget.left() < LEAST_STEP_S:
        if standing.stock in standing.seconds:
            _keep(state, problem, standing.stock, None, _no_race(state, problem))
    else:
        seconds = clamp(0.45 * state.budget.left() - OVERHEAD_S, (RACE_S[0], _most_seconds(state, problem)))
        state.tell("decide", f"{problem.text()}  {challenger}")
        try:
            challenger = _against_kept(state, problem, challenger, seconds)
            final = _final(state, problem, standing.stock, challenger, seconds)
            if final.told.outcome == "accept":
                _watch(state, problem, challenger)
        except CandidateRejected as error:
            state.drop(problem, challenger, error, _deadline(seconds))
            conclude(state, problem)
            return
        winner = challenger if final.told.outcome == "accept" else standing.stock
        if final.race.rounds or winner in standing.seconds:
            _keep(state, problem, winner, final, final.told)


def _watch(state: State, problem: Problem, winner: str) -> None:
    """A checked build of a tile that won, before it is kept: it sees what no output shows. Raises Wrong on a fault.

    Where it cannot be built, takes too long, or a tenth of the budget is used up, that is said and the winner stays.
    """
    source, cost = state.notes.source_of(winner, problem), state.budget.expect("watch", WATCH_S)
    if source in state.watched:
        return
    if (len(state.watched) + 1) * cost > WATCH_SHARE * state.budget.seconds or cost > state.budget.left():
        if NO_ROOM not in state.said:
            state.said.append(NO_ROOM)
        return
    state.tell("prove", f"{problem.format}  {winner}  instrumented")
    try:
        with state.budget.step("watch"):
            state.stand.watch(winner, problem, state.seed, WATCH_DEADLINE_S)
    except Wrong:
        raise
    except CandidateRejected as error:
        state.said.append(f"{problem.text()}: no instrumented run of {winner}: {error}")
    state.watched.add(source)


def _challenger(state: State, problem: Problem) -> str | None:
    """The fastest screened tile that is not the stock."""
    standing = state.standings[problem]
    others = {t: s for t, s in standing.seconds.items() if t != standing.stock}
    return min(others, key=lambda t: (others[t], t), default=None)


def _no_race(state: State, problem: Problem) -> Decision:
    """Why the stock stays without a race: nothing else was right and fast enough, or there was no time to see."""
    standing = state.standings[problem]
    offers, others = standing.group.offers, standing.unproved
    untried = [t for t, offer in offers.items() if problem in offer.prices and t not in standing.group.taken]
    faster = [t for t, s in others.items() if s < standing.seconds.get(standing.stock or "", 0.0)]
    if _challenger(state, problem) is None and not faster and (others or not untried):
        seen = f"; {len(others)} were screened" if others else ""
        return Decision("reject", f"no other tile was right and fast enough to race{seen}")
    return Decision("undecided", "the budget ended before a race")


def _against_kept(state: State, problem: Problem, challenger: str, seconds: float) -> str:
    """The challenger, or the table's tile where the challenger does not beat it."""
    standing = state.standings[problem]
    kept = standing.kept
    if kept is None or kept.tile in (challenger, standing.stock) or kept.tile not in standing.seconds:
        return challenger
    told = _final(state, problem, kept.tile, challenger, seconds).told
    return challenger if told.outcome == "accept" else kept.tile


def _final(state: State, problem: Problem, stock: str, challenger: str, seconds: float) -> Raced:
    said, first = _predicted(state, problem, stock, challenger), FIRST_ROUNDS
    believed = state.notes.hypothesis(problem, stock, challenger, said=said)
    race, ref = _race(state, "final", problem, stock, challenger, seconds, first, state.seed, believed)
    told, refs = decide(race), [ref]
    if told.outcome == "undecided" and race.low > 1 + race.floor:
        again, ref = _race(state, "confirm", problem, stock, challenger, seconds, first, state.seed + 1, believed)
        told, refs = decide(race, again), [*refs, ref]
    return Raced(race, told, believed, tuple(refs))


def _predicted(state: State, problem: Problem, stock: str, challenger: str) -> Prediction | None:
    """What the corrected prices said before either was measured; None where one of the two has none."""
    control, arm = (state.standings[problem].expected.get(tile) for tile in (stock, challenger))
    if control is None or arm is None:
        return None
    ratio = control.seconds / arm.seconds
    paper = predicted(state.notes.price(stock, problem), state.notes.price(challenger, problem))
    return Prediction(ratio, (control.seconds, arm.seconds), CORRECTED, expectation(ratio), paper.reasons)


def _race(
    state: State,
    stage: str,
    problem: Problem,
    stock: str,
    challenger: str,
    seconds: float,
    rounds: int,
    seed: int,
    hypothesis: str | None = None,
) -> tuple[Race, str]:
    """Race and write down; a race that an interrupted run finished without deciding is taken as it is.

    Returns the race and the reference of its entry.
    """
    standing = state.standings[problem]
    if stage in ("final", "confirm") and standing.reuse == "resumed" and standing.kept is None:
        sources = [state.notes.source_of(tile, problem) for tile in (stock, challenger)]
        if (known := state.notes.recall.race(stage, problem, *sources)) is not None:
            return known
    ids = state.ids(problem, [stock, challenger])
    fresh, most = stage == "confirm", 0 if stage == "recheck" else MOST_ROUNDS
    with state.notes.record.watching() as watched:
        race = state.stand.race(problem, stock, challenger, ids, seconds, rounds, seed, _deadline(seconds), fresh, most)
    return race, state.notes.race(stage, race, hypothesis, watched.state)


def _deadline(seconds: float) -> float:
    """Seconds a race of `seconds` may take with everything around it."""
    return 30.0 + 10 * seconds


def _keep(state: State, problem: Problem, winner: str, final: Raced | None, told: Decision) -> None:
    standing, identity = state.standings[problem], state.notes.identity
    race = final.race if final is not None else None
    won = race is not None and winner == race.challenger.tile
    seconds = stock_seconds = standing.seconds[winner]
    if race is not None and race.rounds:
        stock_seconds = race.incumbent_seconds
        seconds = race.challenger_seconds if won else stock_seconds
    point = Point(
        m=problem.m,
        tile=winner,
        stock=standing.stock or "",
        seconds=seconds,
        stock_seconds=stock_seconds,
        ratio=race.ratio if race is not None and won else 1.0,
        low=race.low if race is not None and won else 1.0,
        high=race.high if race is not None and won else 1.0,
        floor=race.floor if race is not None else 0.0,
        rounds=race.rounds if race is not None else 0,
        outcome=told.outcome,
        reason=told.reason,
        validity=Validity(identity.driver, identity.compiler, state.proof(winner, problem).artefact, PROOF_VERSION),
        measured=now(),
        run=state.notes.journal.run,
    )
    challenger = race.challenger.tile if race is not None else winner
    behind = (final.hypothesis, final.races) if final is not None else (None, ())
    state.notes.decide(problem, standing.group.layout, challenger, point, *behind)
    state.rows[problem] = _row(state, problem, point, race, told.reason)


def _row(state: State, problem: Problem, point: Point, race: Race | None, reason: str) -> TuneRow:
    standing = state.standings[problem]
    price, expected = state.notes.price(point.tile, problem), standing.expected.get(point.tile)
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
        reuse=standing.reuse,
        paper_seconds=price.seconds if price is not None else None,
        expected_seconds=expected.seconds if expected is not None else None,
        expected_deviation=expected.deviation if expected is not None else None,
    )
