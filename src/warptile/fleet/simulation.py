"""A shelf of cards that does not exist, under the real schedule: how long it takes, what is lost, what it costs."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warptile.fleet.items import Card, Item
from warptile.fleet.schedule import Schedule


@dataclass(frozen=True)
class Weather:
    """What goes wrong. fail: chance that an item breaks off; die: chance that a card dies during an item (for good);
    straggle: share of cards that are `slow` times slower; spread: relative spread of an item's seconds."""

    fail: float = 0.01
    die: float = 0.0002
    straggle: float = 0.03
    slow: float = 2.0
    spread: float = 0.2


@dataclass(frozen=True)
class Simulated:
    """makespan, bound: seconds; done, lost, begun: items; peak_waiting: items held at once."""

    makespan: float
    bound: float
    done: int
    lost: int
    begun: int
    peak_waiting: int


def simulate(
    cards: Sequence[Card],
    items: Sequence[Item],
    weather: Weather,
    seed: int,
    watch: Callable[[float, Schedule], None] | None = None,
) -> Simulated:
    """Run every item on simulated cards. watch: called after each event with the time and the schedule.

    bound: no schedule of the same durations can be shorter than the largest, over kinds, of (a) all the kind's work
    that was needed, each item once, over its cards' speeds together, and (b) for each card, its own checks. Work that
    broke off and cards that died are not in it: they are the weather's cost, and count against the makespan.
    """
    chance = random.Random(seed)
    schedule = Schedule(items)
    speed = {c.name: 1 / weather.slow if chance.random() < weather.straggle else 1.0 for c in cards}
    for card in cards:
        schedule.join(card)
    events: list[tuple[float, int, str, Item, bool, bool]] = []
    idle = {c.name for c in cards}
    kinds = {c.name: c.kind for c in cards}
    clock, order, peak = 0.0, 0, 0
    needed: dict[str, float] = {}
    own: dict[str, float] = {}
    begun = 0
    while True:
        for name in sorted(idle):
            item = schedule.take(name)
            if item is None:
                continue
            idle.discard(name)
            begun += 1
            plain = item.seconds * max(0.1, chance.gauss(1, weather.spread))
            fails, dies = chance.random() < weather.fail, chance.random() < weather.die
            part = chance.random() if fails or dies else 1.0
            order += 1
            heapq.heappush(events, (clock + part * plain / speed[name], order, name, item, fails, dies))
            if not fails and not dies:
                needed[item.kind] = needed.get(item.kind, 0.0) + plain
                if item.role == "check":
                    own[name] = own.get(name, 0.0) + plain / speed[name]
        peak = max(peak, schedule.counts()["waiting"]) if order % 97 == 0 else peak
        if not events:
            break
        clock, _, name, item, fails, dies = heapq.heappop(events)
        if dies:
            schedule.leave(name, "the card died")
        elif fails:
            schedule.failed(item, name, "it broke off")
            idle.add(name)
        else:
            schedule.done(item, name, {"card": name})
            # A finished search gives every card of its kind something to do; so cards that found nothing ask again.
            idle.add(name)
        if watch is not None:
            watch(clock, schedule)
    counts = schedule.counts()
    rates: dict[str, float] = {}
    for name, rate in speed.items():
        rates[kinds[name]] = rates.get(kinds[name], 0.0) + rate
    bound = max([needed[k] / rates[k] for k in needed] + list(own.values()), default=0.0)
    return Simulated(clock, bound, counts["done"], counts["lost"], begun, peak)
