"""Who does what next: the fleet's bookkeeping, without a device, a network or a clock of its own.

The engine on Ray and the simulation drive the same object. Each kind has a queue of searches, longest first, which
any of its cards takes from. A finished search makes checks for other cards of its kind, those with the least to check;
a card does its checks before it takes a search, so that decisions come early and cards are compared from the start.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from warptile.fleet.items import Card, Item, Outcome

ATTEMPTS = 3
"""An item that failed this often is lost: it fails because of itself."""

CHECKS = 8
"""Cards that check a winner, where a kind has more; which ones goes round, so that every card takes part."""

CHECK_SHARE = 0.15
"""A check proves one tile and races it once: its share of the search's seconds."""

_Queue = list[tuple[float, int, Item]]


class Schedule:
    """Items, cards, and what became of each.

    finished: what an earlier run has done, results by item key, as the journal has them; they count as done. checks:
    how many further cards check a winner (fewer where the kind has fewer). Called by one thread. An item is handed to
    one card at a time and counted once, however late a card thought dead reports. outcomes: by item key. news:
    outcomes since it was last emptied by whoever reads it.
    """

    def __init__(
        self, items: Iterable[Item], finished: dict[str, dict[str, Any]] | None = None, checks: int = CHECKS
    ) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self.news: list[Outcome] = []
        self._checks_wanted = checks
        self._finished = dict(finished or {})
        self._cards: dict[str, Card] = {}
        self._kinds: dict[str, dict[str, Card]] = defaultdict(dict)
        self._running: dict[str, tuple[Item, str]] = {}
        self._at: dict[str, str] = {}
        self._attempts: Counter[str] = Counter()
        self._failed_on: dict[str, set[str]] = defaultdict(set)
        self._searches: dict[str, _Queue] = defaultdict(list)
        self._checks: dict[str, _Queue] = defaultdict(list)
        self._winners: dict[str, dict[str, tuple[Item, str]]] = defaultdict(dict)
        self._checkers: dict[str, set[str]] = defaultdict(set)
        self._counts: Counter[str] = Counter()
        self._order = 0
        for item in items:
            if item.key in self.outcomes or item.key in self._attempts:
                continue
            self._attempts[item.key] = 0
            self._add(item)

    def _add(self, item: Item) -> None:
        known = self._finished.get(item.key)
        if known is None:
            self._push(item)
        else:
            card = item.card or str(known.get("card", ""))
            self._close(Outcome(item, "done", card, 0, known, "done by an earlier run"))

    def _push(self, item: Item) -> None:
        self._order += 1
        self._counts["waiting"] += 1
        queue = self._checks[item.card] if item.role == "check" else self._searches[item.kind]
        heapq.heappush(queue, (-item.seconds, self._order, item))

    def _pop(self, queue: _Queue) -> Item:
        self._counts["waiting"] -= 1
        return heapq.heappop(queue)[2]

    def _drain(self, queue: _Queue) -> list[Item]:
        """Take everything out of a queue; what is over already (a card thought dead reported it) is left out."""
        items = [self._pop(queue) for _ in range(len(queue))]
        return [item for item in items if item.key not in self.outcomes]

    def join(self, card: Card) -> None:
        """A card is there (again): it takes part in the checks that its kind still lacks."""
        self._cards[card.name] = self._kinds[card.kind][card.name] = card
        for search, winner in list(self._winners[card.kind].values()):
            if card.name != winner:
                self._assign_checks(search, winner)

    def leave(self, card: str, reason: str) -> None:
        """A card is gone for good: what it ran, and its checks, go to others of its kind.

        Where it was the last of its kind, the kind's items are lost.
        """
        gone = self._cards.pop(card, None)
        if gone is None:
            return
        del self._kinds[gone.kind][card]
        if card in self._at:
            self.failed(self._running[self._at[card]][0], card, reason)
        for item in self._drain(self._checks[card]):
            self._lose(item, card, reason)
        if not self._kinds[gone.kind]:
            for item in self._drain(self._searches[gone.kind]):
                self._lose(item, card, f"no card of its kind is left ({reason})")

    def take(self, card: str) -> Item | None:
        """The next item for an idle card, which is from now on running there; None where there is none for it."""
        if card not in self._cards or card in self._at:
            return None
        queue = self._checks[card] or self._searches[self._cards[card].kind]
        passed: list[Item] = []
        found: Item | None = None
        while queue and found is None:
            item = self._pop(queue)
            if item.key in self.outcomes:
                continue
            if card in self._failed_on[item.key] and self._others(item):
                passed.append(item)
            else:
                found = item
        for item in passed:
            self._push(item)
        if found is not None:
            self._running[found.key] = (found, card)
            self._at[card] = found.key
            self._attempts[found.key] += 1
        return found

    def _others(self, item: Item) -> bool:
        """Whether a card could take an item that has not failed on it."""
        return item.role == "search" and any(c not in self._failed_on[item.key] for c in self._kinds[item.kind])

    def done(self, item: Item, card: str, result: dict[str, Any]) -> bool:
        """A card finished an item; whether that is news (False: it is done already). What was lost is found again."""
        self._stop(item, card)
        known = self.outcomes.get(item.key)
        if known is not None and known.state == "done":
            return False
        if known is not None:
            self._counts["lost"] -= 1
        self._close(Outcome(item, "done", card, self._attempts[item.key], result))
        return True

    def failed(self, item: Item, card: str, reason: str) -> Outcome | None:
        """An item broke off on a card. It goes to another card of its kind; after `ATTEMPTS`, it is lost.

        Returns what became of it where it is over.
        """
        if not self._stop(item, card) or item.key in self.outcomes:
            return None
        self._failed_on[item.key].add(card)
        tried = self._attempts[item.key]
        alive = card in self._cards if item.role == "check" else bool(self._kinds[item.kind])
        if tried < ATTEMPTS and alive:
            self._push(item)
            return None
        return self._lose(item, card, f"{reason} (attempt {tried})")

    def _stop(self, item: Item, card: str) -> bool:
        """Take note that a card does not run an item any more; whether it did."""
        if self._running.get(item.key, (item, ""))[1] != card:
            return False
        del self._running[item.key]
        del self._at[card]
        return True

    def _lose(self, item: Item, card: str, reason: str) -> Outcome:
        outcome = Outcome(item, "lost", card, self._attempts[item.key], None, reason)
        self._close(outcome)
        if item.role == "check":
            search, winner = self._winners[item.kind][item.problem_key]
            self._assign_checks(search, winner, instead=1)
        return outcome

    def _close(self, outcome: Outcome) -> None:
        item = outcome.item
        self.outcomes[item.key] = outcome
        self.news.append(outcome)
        self._counts[outcome.state] += 1
        if item.role == "search" and outcome.state == "done":
            self._winners[item.kind][item.problem_key] = (item, outcome.card)
            self._assign_checks(item, outcome.card)

    def _assign_checks(self, search: Item, winner: str, instead: int = 0) -> None:
        """Checks for the cards with the least to check, until there are enough; instead: of those that were lost."""
        mine = self._checkers[search.key]
        lost = sum(self._lost(search, c) for c in mine) if instead else 0
        wanted = self._checks_wanted - (len(mine) - lost)
        free = [c for c in self._kinds[search.kind].values() if c.name != winner and c.name not in mine]
        for card in heapq.nsmallest(max(0, wanted), free, key=lambda c: (len(self._checks[c.name]), c.name)):
            mine.add(card.name)
            self._add(search.check_on(card, CHECK_SHARE * search.seconds))

    def _lost(self, search: Item, card: str) -> bool:
        outcome = self.outcomes.get(search.check_key(card))
        return outcome is not None and outcome.state == "lost"

    @property
    def over(self) -> bool:
        """Whether nothing runs and nothing waits that a present card could take."""
        if self._running or any(self._checks[c] for c in self._cards):
            return False
        return not any(self._searches[kind] for kind, cards in self._kinds.items() if cards)

    def strand(self, reason: str) -> None:
        """Close what no card will ever take: what waits for a kind that is not there."""
        for queue in [*self._searches.values(), *self._checks.values()]:
            for item in self._drain(queue):
                self._close(Outcome(item, "lost", item.card, self._attempts[item.key], None, reason))

    def running(self) -> list[tuple[Item, str]]:
        """(item, card) of what runs now."""
        return list(self._running.values())

    def counts(self) -> dict[str, int]:
        """How many items are done, lost, running and waiting."""
        kept = self._counts
        return {"done": kept["done"], "lost": kept["lost"], "running": len(self._running), "waiting": kept["waiting"]}

    def winner(self, item: Item) -> dict[str, Any] | None:
        """The result of the search that a check is about."""
        search = self._winners[item.kind].get(item.problem_key)
        return None if search is None else self.outcomes[search[0].key].result

    def complete(self, item: Item) -> bool:
        """Whether an item's matmul has its search and every check of it over."""
        search = self._winners[item.kind].get(item.problem_key)
        if search is None:
            return False
        return all(search[0].check_key(card) in self.outcomes for card in self._checkers[search[0].key])

    def results_of(self, item: Item) -> list[Outcome]:
        """What cards found for an item's matmul, the search first."""
        search = self._winners[item.kind][item.problem_key][0]
        keys = [search.key, *(search.check_key(card) for card in sorted(self._checkers[search.key]))]
        return [o for key in keys if (o := self.outcomes.get(key)) is not None and o.state == "done"]
