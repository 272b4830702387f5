"""Exploring: which group next, screen its next tiles beside the best so far, prove those worth it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from warptile.contracts import CandidateRejected, Problem
from warptile.race.bench import UNPROVED
from warptile.search import neighbours
from warptile.tuning.conclude import OVERHEAD_S, reserve
from warptile.tuning.order import Group, add_neighbours, next_offers
from warptile.tuning.scale import NEAR, anchor
from warptile.tuning.state import LEAST_STEP_S, State, clamp

BATCH = 4
PATIENCE = 4
FEWEST_BATCHES = 2
GAIN = 0.98
MOST_PROOFS = 8
CLOSE = 1.25
FEWEST_FINALISTS, FINALISTS = 24, 64
PLAY_OFF_S = 60.0
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
                standing.drop(text)
    promote(state, group)
    _look_around(state, group, waiting)


def next_group(state: State) -> Group | None:
    """The group whose next batch promises most; None where time or candidates are used up.

    Promise: the group's share of the time of one pass, over the batches it had; a group with fewer than two goes
    first. A group is left after four batches in a row without a gain. The time of the final races is kept back; from a
    group that has had no batch only that of problems with something to race, beside a batch's own time: what is decided
    serves, what was only looked at does not.
    """
    going = [g for g in state.groups if state.waiting(g) and set(g.offers) - g.taken and g.misses < PATIENCE]
    unopened = [g for g in going if g.rounds == 0]
    least = 2 * OVERHEAD_S * sum(state.standings[p].best is not None for p in state.waiting())
    races = least if unopened else reserve(state)
    needed = races + state.budget.expect("batch", FIRST_BATCH_S) if races else 0.0
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
    many = state.width if short else 2 * state.width
    number = many if state.width > 1 else BATCH // 2 if short else BATCH
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

    Eight at most.
    """
    for _ in range(MOST_PROOFS):
        waiting = state.waiting(group)
        text = _promising(state, group, waiting)
        if text is None or state.budget.left() < LEAST_STEP_S:
            return
        prove_screened(state, text, [p for p in waiting if p in group.offers[text].prices])


def _promising(state: State, group: Group, problems: Sequence[Problem]) -> str | None:
    """The unproved tile that saves most seconds a pass over the fastest proved ones; None where none saves any."""
    saved: dict[str, float] = defaultdict(float)
    for problem in problems:
        standing = state.standings[problem]
        unproved = standing.unproved
        enough = standing.best[1] if standing.best else 2 * max(unproved.values(), default=0.0)
        for text, seconds in unproved.items():
            if text in group.offers:
                saved[text] += group.counts[problem] * max(0.0, enough - seconds)
    found = min(saved, key=lambda text: (-saved[text], text), default=None)
    return found if found is not None and saved[found] > 0 else None


def prove_screened(state: State, text: str, problems: Sequence[Problem]) -> None:
    """Prove a tile on problems; it stays among the timed where it is right, and leaves them all where it is not."""
    right = state.prove(text, problems)
    for standing in (state.standings[p] for p in problems):
        if not right:
            standing.drop(text)
        elif text in standing.timed:
            standing.proved.add(text)


def _look_around(state: State, group: Group, problems: Sequence[Problem]) -> None:
    """Put the neighbours of the best tile of the heaviest of these problems on offer."""
    heaviest = max(problems, key=lambda p: group.counts[p] * p.flops, default=None)
    best = state.standings[heaviest].best if heaviest is not None else None
    if heaviest is not None and best is not None and best[0] in group.offers:
        add_neighbours(group, best[0], heaviest, state.limits, neighbours)


def _screen(state: State, problem: Problem, tiles: Sequence[str]) -> None:
    """Measure tiles beside the best so far; stock and the table's tile are measured along once."""
    standing = state.standings[problem]
    held = [standing.best[0] if standing.best else None, anchor(standing.timed)]
    also = [standing.stock, standing.kept.tile if standing.kept else None]
    untried = [t for t in [*also, *tiles] if t is not None and t not in standing.timed]
    if untried:
        _measure(state, problem, list(dict.fromkeys(t for t in [*held, *untried] if t is not None)))


def play_off(state: State, problem: Problem) -> None:
    """Measure the best tiles of all screenings together: earlier ones saw the machine in different states, and took
    too few samples to tell tiles apart that are 2 % from each other. Then prove the fastest.

    All within a quarter of the best, 64 at most, and in any case the 24 best that take up to twice as long: the best
    may have been lucky. It ends sooner than its seconds where the noise allows. Where even the fastest of them is
    slower than the stock, it is proved too: a race shows that the stock stays.
    """
    standing = state.standings[problem]
    others = sorted((s, t) for t, s in standing.timed.items() if t != standing.stock)
    near = sum(seconds <= NEAR * others[0][0] for seconds, _ in others)
    close = sum(seconds <= CLOSE * others[0][0] for seconds, _ in others)
    finalists = [text for _, text in others[: max(min(near, FEWEST_FINALISTS), min(close, FINALISTS))]]
    if len(finalists) > 1 and state.budget.left() > reserve(state):
        state.ahead([(text, [problem]) for text in finalists])
        _measure(state, problem, finalists, thorough=True)
    for _ in range(MOST_PROOFS):
        left = {t: s for t, s in standing.timed.items() if t != standing.stock}
        fastest = min(left, key=lambda text: (left[text], text), default=None)
        if fastest is None or fastest in standing.proved or state.budget.left() < LEAST_STEP_S:
            return
        prove_screened(state, fastest, [problem])


def _measure(state: State, problem: Problem, arms: Sequence[str], thorough: bool = False) -> None:
    """Screen arms on one problem; where the whole is lost, each alone, so that the one to blame is out.

    thorough: down to the fastest, in at most a third of the time that no race is taken to need.
    """
    standing = state.standings[problem]
    state.expect(problem, arms)
    arms = sorted(arms, key=lambda text: state.guess(problem, text))
    state.tell("race", f"{problem.text()}  {len(arms)} tiles")
    seconds, most = clamp(SCREEN_RUNS * sum(state.guess(problem, arm) for arm in arms), SCREEN_S), state.budget.left()
    if thorough:
        seconds, most = PLAY_OFF_S, (most - reserve(state)) / (3 * len(state.waiting()))
    seconds = min(seconds, max(LEAST_STEP_S, most))
    deadline = 30.0 + 5 * seconds
    ids = state.ids_so_far(problem, arms)
    try:
        with state.notes.record.watching() as watched:
            screening = state.stand.screen(problem, ids, seconds, state.seed, deadline, thorough)
    except CandidateRejected as error:
        if len(arms) == 1:
            _lose(state, problem, arms[0], error, deadline)
        else:
            for arm in arms:
                _measure(state, problem, [arm])
        return
    state.notes.screening(problem, screening, watched.state, standing.expected)
    for refused, reason in screening.refused:
        _lose(state, problem, refused.tile, reason, deadline)
    standing.group.taken.difference_update(arm.tile for arm in screening.unmeasured)
    found = {s.arm.tile: s.seconds for s in (*screening.survivors, *screening.dropped)}
    # In the order of their prices, not of their luck: the first of them may become the anchor.
    state.learn(problem, {text: found[text] for text in arms if text in found}, thorough)


def _lose(state: State, problem: Problem, text: str, error: CandidateRejected, deadline: float) -> None:
    """A tile failed while it was measured; one without a proof is not tried on the group's other problems."""
    if state.ids_so_far(problem, [text])[text] == UNPROVED:
        state.standings[problem].group.failed.add(text)
    state.drop(problem, text, error, deadline)
