"""One decision a kind of device: every card has a say, and a card that disagrees is named."""

from __future__ import annotations

import pytest

from warptile.fleet.verdicts import Measured, agree, pooled


def card(name: str, ratio: float, width: float = 0.02, floor: float = 0.01, outcome: str = "accept") -> Measured:
    return Measured(name, ratio, ratio * (1 - width), ratio * (1 + width), floor, outcome)


def test_cards_that_agree_accept_with_a_narrower_interval() -> None:
    cards = [card("a", 1.30), card("b", 1.31), card("c", 1.29)]
    told = agree(cards)
    assert told.outcome == "accept"
    assert told.odd == ()
    assert told.low < 1.30 < told.high
    assert told.high / told.low < cards[0].high / cards[0].low


def test_a_throttling_card_is_named_and_widens_the_joint_interval() -> None:
    told = agree([card("a", 1.30), card("b", 1.31), card("c", 1.29), card("hot", 1.05)])
    assert told.odd == ("hot",)
    assert "hot" in told.reason
    calm = agree([card("a", 1.30), card("b", 1.31), card("c", 1.29)])
    assert told.high / told.low > calm.high / calm.low


def test_a_card_on_which_the_winner_is_slower_stops_it() -> None:
    told = agree([card("a", 1.30), card("b", 1.31), card("slow", 0.90)])
    assert told.outcome == "disagree"
    assert "slower on slow" in told.reason


def test_a_gain_within_the_floor_stays_undecided() -> None:
    assert agree([card("a", 1.02, floor=0.05), card("b", 1.03, floor=0.05)]).outcome == "undecided"


def test_a_card_alone_decides_as_it_did() -> None:
    alone = card("a", 1.5, outcome="undecided")
    told = agree([alone])
    assert (told.outcome, told.low, told.high) == ("undecided", alone.low, alone.high)
    with pytest.raises(ValueError, match="no card"):
        agree([])


def test_two_equal_cards_halve_the_variance() -> None:
    one = card("a", 1.2)
    ratio, low, high = pooled([one, card("b", 1.2)])
    assert ratio == pytest.approx(1.2)
    _, single_low, single_high = pooled([one])
    # Half-widths add as 1 / sqrt(sum of 1 / w^2): two equal ones give w / sqrt(2), here in logarithms.
    assert (high / low) == pytest.approx((single_high / single_low) ** (1 / 2**0.5), rel=1e-9)
