"""Exploring: which group next, screen its next tiles beside the best so far, prove those worth it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from warptile.contracts import CandidateRejected, Problem
from warptile.race.bench import UNPROVED
from warptile.search import neighbours
from warptile.tuning.conclude import OVERHEAD_S, reserve
from warptile.tuning.order import Group, add_neighbours, next_offers
from warptile.tuning.state import LEAST_STEP_S, State, clamp

BATCH = 4
PATIENCE = 4
FEWEST_BATCHES = 2
GAIN = 0.98
NEARLY = 1.05
PROOFS = 3
MOST_PROOFS = 8
RIVALS = 2
CLOSE = 1.25
FINALISTS = 6
FIRST_BATCH_S = 10.0
SCREEN_S = (4.0, 20.0)
SCREEN_RUNS = 8


def ready_stock(state: State) -> None:
    """Have the stock tiles of all groups compiled side by side."""
    state.ahead([(g.stock[p], [p]) for g in state.groups for p in state.waiting(g) if p in g.stock])


def open_group(state: State, group: Group) -> None:
    """Prove what a group starts from: stock tiles, the table's tiles, what was proved or looked fast before."""
    waiting = state.waiting(group)
    if state.budget.left() < LEAST_STEP_S:
        return
    for text in dict.fromkeys(group.stock[p] for p in waiting if p in group.stock):
        group.taken.add(text)
        members = [p for p in waiting if group.stock.get(p) == text]
        if not state.prove(text, members):
            for problem in members:
                state.without_stock(problem, state.why_not)
    for problem in waiting:
        standing = state.standings[problem]
        kept = standing.kept
        if kept is not None and kept.tile != standing.stock:
            group.taken.add(kept.tile)
            if not state.prove(kept.tile, [problem], again=True):
                state.distrust(problem, f"is no longer right ({state.why_not})")
        for text in [t for t in standing.seconds if t != standing.stock]:
            if not state.prove(text, [problem]):
                del standing.seconds[text]
    promote(state, group)
    _look_around(state, group, waiting)


def next_group(state: State) -> Group | None:
    """The group whose next batch promises most; None where time or candidates are used up.

    Promise: the group's share of the time of one pass, over the batches it had; a group with fewer than two goes
    first. A group is left after four batches in a row without a gain. The time of the final races is kept back; from a
    group that has had no batch only that of problems with something to race, since its own would have no row.
    """
    going = [g for g in state.groups if state.waiting(g) and set(g.offers) - g.taken and g.misses < PATIENCE]
    unopened = [g for g in going if g.rounds == 0]
    least = 2 * OVERHEAD_S * sum(state.standings[p].best is not None for p in state.waiting())
    needed = least if unopened else reserve(state) + state.budget.expect("batch", FIRST_BATCH_S)
    if state.budget.left() < needed:
        return None
    fresh = [g for g in going if g.rounds < FEWEST_BATCHES]
    return max(unopened or fresh or going, key=lambda g: _weight(state, g) / (1 + g.rounds), default=None)


def _weight(state: State, group: Group) -> float:
    bests = _bests(state, group)
    return sum(group.counts[p] * (bests[p][1] if p in bests else p.flops / 1e9) for p in group.problems)


def _bests(state: State, group: Group) -> dict[Problem, tuple[str, float]]:
    return {p: best for p in state.waiting(group) if (best := state.standings[p].best) is not None}


def explore(state: State, group: Group) -> None:
    """One batch of a group: screen the next tiles on every problem that waits, prove those that look fastest."""
    waiting = state.waiting(group)
    short = state.budget.left() < reserve(state) + FIRST_BATCH_S * sum(g.rounds == 0 for g in state.groups)
    bests = {p: min(state.standings[p].timed.values(), default=None) for p in waiting}
    # What is compiled side by side costs little more than one; without that, a batch is cut where time is.
    number = 2 * state.width if state.width > 1 else 1 if short else BATCH
    offers = next_offers(group, number, bests, state.correction(group), state.limits)
    with state.budget.step("batch"):
        before = _bests(state, group)
        state.ahead([(o.text, [p for p in waiting if p in o.prices]) for o in offers])
        group.taken.update(offer.text for offer in offers)
        for problem in waiting:
            if state.budget.left() > LEAST_STEP_S:
                mine = [o for o in offers if problem in o.prices and o.text not in group.failed]
                _screen(state, problem, [o.text for o in mine if not state.refused(o.text, problem)])
        promote(state, group)
    after = _bests(state, group)
    gained = [p for p in after if p not in before or after[p][1] < GAIN * _seconds(state, p, before[p][0])]
    group.rounds += 1
    group.misses = 0 if gained else group.misses + 1
    _look_around(state, group, gained)


def _seconds(state: State, problem: Problem, text: str) -> float:
    return state.standings[problem].seconds.get(text, float("inf"))


def promote(state: State, group: Group) -> None:
    """Prove screened tiles, those that save most of a pass first, until no other is faster than the fastest proved.

    The first three proofs of a batch also go to tiles up to 5 % slower: a screening is no race. Eight at most.
    """
    for done in range(MOST_PROOFS):
        text = _promising(state, group, NEARLY if done < PROOFS else 1.0)
        if text is None or state.budget.left() < LEAST_STEP_S:
            return
        members = [p for p in state.waiting(group) if p in group.offers[text].prices]
        right = state.prove(text, members)
        for problem in members:
            standing = state.standings[problem]
            seconds = standing.unproved.pop(text, None)
            if right and seconds is not None:
                standing.seconds[text] = seconds


def _promising(state: State, group: Group, slack: float) -> str | None:
    """The unproved tile that saves most seconds a pass below `slack` times the fastest proved ones; None: none does."""
    saved: dict[str, float] = defaultdict(float)
    for problem in state.waiting(group):
        standing = state.standings[problem]
        enough = slack * standing.best[1] if standing.best else 2 * max(standing.unproved.values(), default=0.0)
        for text, seconds in standing.unproved.items():
            if text in group.offers:
                saved[text] += group.counts[problem] * max(0.0, enough - seconds)
    found = min(saved, key=lambda text: (-saved[text], text), default=None)
    return found if found is not None and saved[found] > 0 else None


def _look_around(state: State, group: Group, problems: Sequence[Problem]) -> None:
    """Put the neighbours of the best tile of the heaviest of these problems on offer."""
    heaviest = max(problems, key=lambda p: group.counts[p] * p.flops, default=None)
    best = state.standings[heaviest].best if heaviest is not None else None
    if heaviest is not None and best is not None and best[0] in group.offers:
        add_neighbours(group, best[0], heaviest, state.limits, neighbours)


def _screen(state: State, problem: Problem, tiles: Sequence[str]) -> None:
    """Measure tiles beside the best so far; stock and the table's tile are measured along once."""
    standing = state.standings[problem]
    held = [standing.best[0]] if standing.best else []
    also = [standing.stock, standing.kept.tile if standing.kept else None]
    new = [*also, *tiles]
    arms = list(dict.fromkeys([*held, *(t for t in new if t is not None and t not in standing.timed)]))
    if not all(text in standing.timed for text in arms):
        _measure(state, problem, arms)


def play_off(state: State, problem: Problem) -> None:
    """Screen the best tiles of all screenings together, once more: earlier ones saw the machine in different states.

    Where no tile but the stock is proved, the fastest other is proved first: that the stock stays is shown by a race.
    """
    standing = state.standings[problem]
    rivals = sorted(standing.unproved, key=lambda text: (standing.unproved[text], text))
    for text in rivals[:RIVALS] if set(standing.seconds) <= {standing.stock} else ():
        seconds = standing.unproved.pop(text)
        if state.budget.left() > reserve(state) and state.prove(text, [problem]):
            standing.seconds[text] = seconds
            break
    others = sorted((s, t) for t, s in standing.seconds.items() if t != standing.stock)
    close = [text for seconds, text in others if seconds <= CLOSE * others[0][0]][:FINALISTS]
    if len(close) > 1 and state.budget.left() > reserve(state):
        _measure(state, problem, close)


def _measure(state: State, problem: Problem, arms: Sequence[str]) -> None:
    """Screen arms on one problem; where the whole is lost, each alone, so that the one to blame is out."""
    standing = state.standings[problem]
    state.expect(problem, arms)
    arms = sorted(arms, key=lambda text: state.guess(problem, text))
    state.tell("race", f"{problem.text()}  {len(arms)} tiles")
    seconds = clamp(SCREEN_RUNS * sum(state.guess(problem, arm) for arm in arms), SCREEN_S)
    seconds = min(seconds, max(LEAST_STEP_S, state.budget.left()))
    deadline = 30.0 + 5 * seconds
    ids = state.ids_so_far(problem, arms)
    try:
        with state.notes.record.watching() as watched:
            screening = state.stand.screen(problem, ids, seconds, state.seed, deadline)
    except CandidateRejected as error:
        if len(arms) == 1:
            state.drop(problem, arms[0], error, deadline)
            if ids[arms[0]] == UNPROVED:
                standing.group.failed.add(arms[0])
        else:
            for arm in arms:
                _measure(state, problem, [arm])
        return
    state.notes.screening(problem, screening, watched.state, standing.expected)
    standing.group.taken.difference_update(arm.tile for arm in screening.unmeasured)
    state.learn(problem, {s.arm.tile: s.seconds for s in (*screening.survivors, *screening.dropped)})
