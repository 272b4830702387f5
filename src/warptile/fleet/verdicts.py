"""From every card's race to one decision a kind of device, and the cards that disagree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """One card's answer: stock seconds / winner's seconds, paired, in [low, high]; floor: its A/A floor."""

    card: str
    ratio: float
    low: float
    high: float
    floor: float
    outcome: str


@dataclass(frozen=True)
class Agreement:
    """What all cards of a kind say together.

    ratio, low, high: mean of log ratios, each weighted by 1 / (its variance + the variance between cards)
    (DerSimonian and Laird, 1986), at the cards' own confidence. odd: cards whose interval does not meet that of the
    others taken together. outcome: "accept" where the joint interval lies above 1 by more than the median floor and no
    card's own interval lies below 1; else "disagree" where cards do, else "undecided". A card alone decides as it did.
    """

    outcome: str
    ratio: float
    low: float
    high: float
    cards: int
    odd: tuple[str, ...]
    reason: str


def agree(measured: Sequence[Measured]) -> Agreement:
    """The joint answer of at least one card. Raises ValueError for none."""
    if not measured:
        raise ValueError("no card measured it")
    if len(measured) == 1:
        one = measured[0]
        line = f"{one.ratio:.3f}x [{one.low:.3f}, {one.high:.3f}] on the only card"
        return Agreement(one.outcome, one.ratio, one.low, one.high, 1, (), line)
    ratio, low, high = pooled(measured)
    odd = tuple(m.card for m in measured if not _meets(m, [o for o in measured if o is not m]))
    floor = sorted(m.floor for m in measured)[len(measured) // 2]
    against = [m.card for m in measured if m.high < 1]
    line = f"{ratio:.3f}x [{low:.3f}, {high:.3f}] on {len(measured)} cards"
    if odd:
        line += f"; beyond the others' interval: {', '.join(odd)}"
    if against and any(m.low > 1 for m in measured):
        outcome, line = "disagree", f"{line}; slower on {', '.join(against)}"
    elif low > 1 + floor and not against:
        outcome = "accept"
    else:
        outcome = "undecided"
    return Agreement(outcome, ratio, low, high, len(measured), odd, line)


def pooled(measured: Sequence[Measured]) -> tuple[float, float, float]:
    """(ratio, low, high) of all cards together, in logarithms; a card without a width counts as one of 0.1 %."""
    logs = [math.log(m.ratio) for m in measured]
    widths = [max((math.log(m.high) - math.log(m.low)) / 2, 1e-3) for m in measured]
    weights = [1 / w**2 for w in widths]
    between = _between(logs, weights)
    weights = [1 / (w**2 + between) for w in widths]
    mean = sum(w * x for w, x in zip(weights, logs, strict=True)) / sum(weights)
    half = 1 / math.sqrt(sum(weights))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def _between(logs: Sequence[float], weights: Sequence[float]) -> float:
    """Variance between cards, in units of the squared half-widths (DerSimonian and Laird's moment estimate)."""
    if len(logs) < 2:
        return 0.0
    total = sum(weights)
    mean = sum(w * x for w, x in zip(weights, logs, strict=True)) / total
    spread = sum(w * (x - mean) ** 2 for w, x in zip(weights, logs, strict=True))
    scale = total - sum(w**2 for w in weights) / total
    return max(0.0, (spread - (len(logs) - 1)) / scale) if scale > 0 else 0.0


def _meets(one: Measured, others: Sequence[Measured]) -> bool:
    _, low, high = pooled(others)
    return one.low <= high and low <= one.high
