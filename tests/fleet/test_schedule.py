"""The fleet's bookkeeping: whatever cards do, no matmul is lost in silence, done twice or counted twice."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from warptile.contracts import Problem
from warptile.fleet.items import Card, Item
from warptile.fleet.schedule import ATTEMPTS, Schedule
from warptile.fleet.simulation import Weather, simulate

KIND = "One (vulkan)"
CARDS = [Card(KIND, f"node{i}", "vulkan:0") for i in range(3)]


def items(count: int, kind: str = KIND) -> list[Item]:
    return [Item(kind, Problem("Q4_K", 256 * (i + 1), 256, 16), seconds=10.0 + i) for i in range(count)]


def joined(
    *cards: Card, work: list[Item], checks: int = 8, finished: dict[str, dict[str, str]] | None = None
) -> Schedule:
    schedule = Schedule(work, finished, checks)
    for card in cards:
        schedule.join(card)
    return schedule


def finish(schedule: Schedule) -> None:
    """Every card does what it is given until there is nothing left."""
    busy = True
    while busy:
        busy = False
        for name in [c.name for c in CARDS]:
            if (item := schedule.take(name)) is not None:
                schedule.done(item, name, {"card": name})
                busy = True


def test_a_winner_is_checked_on_every_other_card_of_its_kind() -> None:
    schedule = joined(*CARDS, work=items(1))
    search = schedule.take(CARDS[0].name)
    assert search is not None
    assert schedule.take(CARDS[1].name) is None
    schedule.done(search, CARDS[0].name, {"card": CARDS[0].name})
    checks = [schedule.take(card.name) for card in CARDS]
    assert [c.role if c else None for c in checks] == [None, "check", "check"]
    assert not schedule.complete(search)
    for card, check in zip(CARDS[1:], checks[1:], strict=True):
        assert check is not None
        schedule.done(check, card.name, {})
    assert schedule.complete(search)
    assert schedule.over


def test_where_a_kind_has_many_cards_the_checks_go_round() -> None:
    cards = [Card(KIND, f"node{i}", "vulkan:0") for i in range(9)]
    schedule = joined(*cards, work=items(8), checks=2)
    for _ in range(8):
        search = schedule.take(cards[0].name)
        assert search is not None
        schedule.done(search, cards[0].name, {})
    taken = Counter(item.card for card in cards[1:] for item in iter(lambda c=card: _next(schedule, c), None))  # type: ignore[misc]
    assert taken == {card.name: 2 for card in cards[1:]}


def _next(schedule: Schedule, card: Card) -> Item | None:
    item = schedule.take(card.name)
    if item is not None:
        schedule.done(item, card.name, {})
    return item


def test_work_of_a_dead_card_goes_to_another_of_its_kind() -> None:
    schedule = joined(*CARDS[:2], work=items(1))
    search = schedule.take(CARDS[0].name)
    assert search is not None
    schedule.leave(CARDS[0].name, "its node was lost")
    again = schedule.take(CARDS[1].name)
    assert again == search
    # The dead card's answer arrives late: it counts, and what the other card then says does not.
    assert schedule.done(search, CARDS[0].name, {"card": CARDS[0].name})
    assert not schedule.done(search, CARDS[1].name, {"card": CARDS[1].name})
    assert schedule.counts()["done"] == 1


def test_an_item_that_fails_everywhere_is_lost_with_its_reason() -> None:
    schedule = joined(*CARDS, work=items(1))
    for attempt in range(ATTEMPTS):
        card = CARDS[attempt].name
        search = schedule.take(card)
        assert search is not None
        assert schedule.take(CARDS[(attempt + 1) % 3].name) is None
        schedule.failed(search, card, "the compiler died")
    (outcome,) = schedule.outcomes.values()
    assert outcome.state == "lost"
    assert outcome.reason == "the compiler died (attempt 3)"
    assert schedule.over


def test_the_last_card_of_a_kind_takes_its_work_with_it_and_that_is_said() -> None:
    schedule = joined(CARDS[0], work=[*items(2), *items(1, "Other (cuda)")])
    schedule.leave(CARDS[0].name, "unplugged")
    assert schedule.over
    schedule.strand("no card of its kind joined")
    reasons = sorted(o.reason for o in schedule.outcomes.values())
    assert reasons == [*["no card of its kind is left (unplugged)"] * 2, "no card of its kind joined"]


def test_a_check_of_a_card_that_left_goes_to_a_card_that_has_not_checked() -> None:
    schedule = joined(*CARDS, work=items(1), checks=1)
    search = schedule.take(CARDS[0].name)
    assert search is not None
    schedule.done(search, CARDS[0].name, {})
    schedule.leave(CARDS[1].name, "gone")
    check = schedule.take(CARDS[2].name)
    assert check is not None
    assert check.role == "check"
    assert not schedule.complete(search)
    schedule.done(check, CARDS[2].name, {})
    assert schedule.complete(search)


def test_a_run_resumes_from_what_was_done() -> None:
    work = items(4)
    first = joined(*CARDS, work=work)
    finish(first)
    finished = {key: dict(o.result or {}) for key, o in first.outcomes.items()}
    again = joined(*CARDS, work=work, finished=finished)
    assert again.over
    assert again.counts()["done"] == first.counts()["done"] == 4 + 4 * 2
    del finished[work[0].key]
    again = joined(*CARDS, work=work, finished=finished)
    assert [again.take(card.name) for card in CARDS] == [work[0], None, None]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_nothing_is_lost_or_counted_twice_whatever_happens(data: st.DataObject) -> None:
    work = items(5)
    schedule = joined(*CARDS, work=work, checks=data.draw(st.integers(0, 3)))
    counted: Counter[str] = Counter()
    running: list[tuple[Item, str]] = []
    for _ in range(40):
        card = data.draw(st.sampled_from(CARDS))
        event = data.draw(st.sampled_from(["take", "done", "fail", "leave", "join"]))
        if event == "take" and (item := schedule.take(card.name)) is not None:
            running.append((item, card.name))
        elif event in ("done", "fail") and running:
            item, name = running.pop(data.draw(st.integers(0, len(running) - 1)))
            if event == "done":
                counted[item.key] += schedule.done(item, name, {"card": name})
            else:
                schedule.failed(item, name, "broke off")
        elif event == "leave":
            schedule.leave(card.name, "gone")
        elif event == "join":
            schedule.join(card)
    for card in CARDS:
        schedule.join(card)
    for item, name in running:
        schedule.failed(item, name, "broke off")
    finish(schedule)
    schedule.strand("nobody")
    assert max(counted.values(), default=1) == 1
    assert schedule.over
    counts = schedule.counts()
    assert counts["running"] == counts["waiting"] == 0
    assert {item.key for item in work} <= set(schedule.outcomes)
    assert counts["done"] + counts["lost"] == len(schedule.outcomes)


def test_a_shelf_with_failures_and_stragglers_is_near_the_lower_bound() -> None:
    kinds = [f"kind {i}" for i in range(4)]
    cards = [Card(kinds[i % 4], f"node{i}", "vulkan:0") for i in range(60)]
    work = [item for kind in kinds for item in items(200, kind)]
    found = simulate(cards, work, Weather(), seed=3)
    assert found.done + found.lost >= len(work)
    assert found.lost <= 0.01 * found.done
    assert found.makespan <= 1.2 * found.bound
