"""Why one tile should be faster than another, from their prices, in words."""

from __future__ import annotations

from warptile.contracts import Price
from warptile.journal.entries import Prediction

SAME = 1e-4
"""Ratios nearer to 1 than this are called equal."""


def expectation(ratio: float | None) -> str:
    """ "gain", "loss" or "equal" of a ratio control / arm; "open" of none."""
    if ratio is None:
        return "open"
    if abs(ratio - 1) < SAME:
        return "equal"
    return "gain" if ratio > 1 else "loss"


def predicted(control: Price | None, arm: Price | None, by: str = "price") -> Prediction:
    """What two prices say of a race: control seconds / arm seconds, and what differs."""
    seconds = (None if control is None else control.seconds, None if arm is None else arm.seconds)
    if control is None or arm is None or not arm.seconds > 0:
        return Prediction(None, seconds, by)
    ratio = control.seconds / arm.seconds
    return Prediction(ratio, seconds, by, expectation(ratio), tuple(differences(control, arm)))


def differences(control: Price, arm: Price) -> list[str]:
    """What the arm's price has other than the control's, both numbers each."""
    found = []
    if arm.spills != control.spills:
        found.append("it spills, the control does not" if arm.spills else "it does not spill, the control does")
    if arm.accumulators != control.accumulators:
        found.append(f"{arm.accumulators} accumulators a thread against {control.accumulators}")
    if arm.resident_threads != control.resident_threads:
        found.append(
            f"{arm.resident_threads} resident threads (limited by {arm.limited_by}) against"
            f" {control.resident_threads} ({control.limited_by})"
        )
    if arm.shared_bytes != control.shared_bytes:
        found.append(f"{arm.shared_bytes} B of shared memory against {control.shared_bytes}")
    if abs(arm.intensity - control.intensity) > 0.01 * control.intensity:
        found.append(f"{arm.intensity:.1f} FLOP a byte against {control.intensity:.1f}")
    if arm.workgroups != control.workgroups:
        found.append(
            f"{arm.workgroups} workgroups, the last wave {arm.fill:.0%} full, against {control.workgroups},"
            f" {control.fill:.0%}"
        )
    return found or ["other work a thread"]
