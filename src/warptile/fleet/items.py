"""What a fleet works on: cards, items of work, what became of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from warptile.contracts import Problem

Role = Literal["search", "check"]


@dataclass(frozen=True, order=True)
class Card:
    """One device of one node. kind: what is exchangeable with it, exact device name and runtime as one text.

    node: the node's name; device: its id there ("vulkan:0").
    """

    kind: str
    node: str
    device: str

    @property
    def name(self) -> str:
        """`NODE/DEVICE`, which tells two cards of a kind apart."""
        return f"{self.node}/{self.device}"


def kind_of(device: str, runtime: str) -> str:
    """The kind of a device: exact name and runtime."""
    return f"{device} ({runtime})"


@dataclass(frozen=True)
class Item:
    """One piece of work: a matmul on a kind of device.

    role: "search" finds a winner on any one card of the kind; "check" proves and races that winner again on one card
    more, `card` by name. seconds: what it is expected to take. source: the model that asks for the matmul.
    """

    kind: str
    problem: Problem
    role: Role = "search"
    card: str = ""
    seconds: float = 60.0
    source: str = ""

    @cached_property
    def problem_key(self) -> str:
        """The matmul in words, dtypes included."""
        p = self.problem
        return f"{p.text()} {p.x_dtype}->{p.y_dtype}"

    @cached_property
    def key(self) -> str:
        """What makes it this item: kind, matmul, role and, for a check, its card. The same in every run."""
        return self._key(self.role, self.card)

    def check_key(self, card: str) -> str:
        """The key of this search's check on a card."""
        return self._key("check", card)

    def _key(self, role: Role, card: str) -> str:
        where = f" on {card}" if card else ""
        return f"{role} {self.problem_key} [{self.kind}]{where}"

    def check_on(self, card: Card, seconds: float) -> Item:
        """The check of this search's winner on another card."""
        return dataclasses.replace(self, role="check", card=card.name, seconds=seconds)


@dataclass(frozen=True)
class Outcome:
    """An item that is over. state: "done" or "lost". card: where it ended. result: what the card measured.

    attempts: how often it was begun. reason: why it was lost, or why it had to be begun again.
    """

    item: Item
    state: Literal["done", "lost"]
    card: str
    attempts: int
    result: dict[str, Any] | None = None
    reason: str = ""
