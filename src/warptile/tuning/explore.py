"""Exploring: which group next, prove its next tiles, screen them beside the best so far."""

from __future__ import annotations

from collections.abc import Sequence

from warptile.contracts import CandidateRejected, Problem
from warptile.search import neighbours
from warptile.tuning.conclude import OVERHEAD_S, reserve
from warptile.tuning.order import Group, Offer, add_neighbours, next_offers
from warptile.tuning.scale import NEAR, anchor, joined
from warptile.tuning.state import LEAST_STEP_S, State, clamp

BATCH = 3
PATIENCE = 4
FEWEST_BATCHES = 2
GAIN = 0.98
CLOSE = 1.25
FEWEST_FINALISTS, FINALISTS = 24, 64
PLAY_OFF_S = 30.0
FIRST_BATCH_S = 10.0
SCREEN_S = (4.0, 20.0)
SCREEN_RUNS = 8


def ready_stock(state: State) -> None:
    """Have the stock tiles of all groups compiled side by side."""
    state.ahead([(g.stock[p], [p]) for g in state.groups for p in state.waiting(g) if p in g.stock])


def open_group(state: State, group: Group) -> None:
    """Prove what a group starts from: stock tiles, the table's tiles, the best of earlier screenings."""
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
    """One batch of a group: prove the next tiles, screen the right ones on every problem that waits."""
    waiting = state.waiting(group)
    short = state.budget.left() < reserve(state) + FIRST_BATCH_S * sum(g.rounds == 0 for g in state.groups)
    offers = next_offers(group, 1 if short else BATCH, _bests(state, group), state.calibration)
    with state.budget.step("batch"):
        right = []
        state.ahead([(o.text, [p for p in waiting if p in o.prices]) for o in offers])
        for offer in offers:
            group.taken.add(offer.text)
            members = [p for p in waiting if p in offer.prices]
            if members and state.prove(offer.text, members):
                right.append(offer)
        gained = [p for p in waiting if state.budget.left() > LEAST_STEP_S and _screen(state, p, right)]
    group.rounds += 1
    group.misses = 0 if gained else group.misses + 1
    _look_around(state, group, gained)


def _look_around(state: State, group: Group, problems: Sequence[Problem]) -> None:
    """Put the neighbours of the best tile of the heaviest of these problems on offer."""
    heaviest = max(problems, key=lambda p: group.counts[p] * p.flops, default=None)
    best = state.standings[heaviest].best if heaviest is not None else None
    if heaviest is not None and best is not None and best[0] in group.offers:
        add_neighbours(group, best[0], heaviest, state.limits, neighbours)


def _screen(state: State, problem: Problem, offers: Sequence[Offer]) -> bool:
    """Whether one of the offers beats the best so far by 2 %; stock and the table's tile are measured along once."""
    standing = state.standings[problem]
    before = standing.best
    held = [before[0], anchor(standing.seconds)] if before else []
    also = [standing.stock, standing.kept.tile if standing.kept else None]
    new = [*also, *(o.text for o in offers if problem in o.prices)]
    untried = [t for t in new if t is not None and t not in standing.seconds]
    if not untried:
        return False
    arms = list(dict.fromkeys(t for t in [*held, *untried] if t is not None))
    _measure(state, problem, arms)
    after = standing.best
    if after is None:
        return False
    return before is None or after[1] < GAIN * standing.seconds.get(before[0], float("inf"))


def play_off(state: State, problem: Problem) -> None:
    """Measure the best tiles of all screenings together: earlier ones saw the machine in different states, and took
    too few samples to tell tiles apart that are 2 % from each other.

    All within a quarter of the best, 64 at most, and in any case the 24 best that take up to twice as long: the best
    may have been lucky. It ends sooner than its seconds where the noise allows.
    """
    standing = state.standings[problem]
    others = sorted((s, t) for t, s in standing.seconds.items() if t != standing.stock)
    near = sum(seconds <= NEAR * others[0][0] for seconds, _ in others)
    close = sum(seconds <= CLOSE * others[0][0] for seconds, _ in others)
    finalists = [text for _, text in others[: max(min(near, FEWEST_FINALISTS), min(close, FINALISTS))]]
    if len(finalists) > 1 and state.budget.left() > reserve(state):
        _measure(state, problem, finalists, thorough=True)


def _measure(state: State, problem: Problem, arms: Sequence[str], thorough: bool = False) -> None:
    """Screen arms on one problem; where the whole is lost, each alone, so that the one to blame is out.

    thorough: down to the fastest, in at most a third of the time that no race is taken to need.
    """
    standing = state.standings[problem]
    arms = sorted(arms, key=lambda text: state.guess(problem, text))
    state.tell("race", f"{problem.text()}  {len(arms)} tiles")
    seconds, most = clamp(SCREEN_RUNS * sum(state.guess(problem, arm) for arm in arms), SCREEN_S), state.budget.left()
    if thorough:
        seconds, most = PLAY_OFF_S, (most - reserve(state)) / (3 * len(state.waiting()))
    seconds = min(seconds, max(LEAST_STEP_S, most))
    deadline = 30.0 + 5 * seconds
    try:
        with state.notes.record.watching() as watched:
            screening = state.stand.screen(problem, state.ids(problem, arms), seconds, state.seed, deadline, thorough)
    except CandidateRejected as error:
        if len(arms) == 1:
            state.drop(problem, arms[0], error, deadline)
        else:
            for arm in arms:
                _measure(state, problem, [arm])
        return
    state.notes.screening(problem, screening, watched.state)
    standing.group.taken.difference_update(arm.tile for arm in screening.unmeasured)
    found = {s.arm.tile: s.seconds for s in (*screening.survivors, *screening.dropped)}
    # In the order of their prices, not of their luck: the first of them may become the anchor.
    measured = {text: found[text] for text in arms if text in found}
    standing.seconds = joined(standing.seconds, measured, thorough)
    for text, took in measured.items():
        price = state.notes.price(text, problem)
        if price is not None:
            state.calibration.add(text.split(":", 1)[0], price.seconds, took)
