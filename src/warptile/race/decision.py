"""From races to a decision."""

from __future__ import annotations

from warptile.contracts import Decision, Race
from warptile.race.statistics import FEWEST_ROUNDS, LEAST_GAIN, UNBOUNDED


def decide(race: Race, confirm: Race | None = None) -> Decision:
    """accept, reject or undecided.

    accept: the interval's low end is above 1 + the A/A floor of the same run, and so is 1 below the low end of
    `confirm`, the same pair raced again on fresh buffers with another seed. reject: the interval, or the
    confirmation's, lies at or below 1, or holds 1 and no gain of 1 %. undecided: everything between, or fewer than 8
    rounds, or no confirmation. A tile no faster than the incumbent is accepted with a probability of at most
    ((1 - confidence) / 2)^2, 1 in 1,600 at 95 %, since the two races draw their orders independently of each other.

    The deciding races hold only samples taken after the challenger was chosen: a screening picks the luckiest of many
    arms, so its samples would flatter the pick.
    """
    line = _line(race)
    if race.rounds < FEWEST_ROUNDS:
        return Decision("undecided", f"{line}: fewer than {FEWEST_ROUNDS} rounds fit the time")
    if race.high <= 1:
        return Decision("reject", f"{line}: not faster")
    if race.low <= 1 and race.high < 1 + LEAST_GAIN:
        return Decision("reject", f"{line}: no gain of {LEAST_GAIN:.0%}")
    if race.low <= 1:
        return Decision("undecided", f"{line}: the interval holds 1")
    if race.low <= 1 + race.floor:
        return Decision("undecided", f"{line}: not beyond the A/A floor")
    if confirm is None:
        return Decision("undecided", f"{line}: not confirmed on fresh buffers")
    again = f"{line}; fresh buffers {_line(confirm)}"
    if confirm.rounds < FEWEST_ROUNDS:
        return Decision("undecided", f"{again}: fewer than {FEWEST_ROUNDS} rounds to confirm it")
    if confirm.high <= 1:
        return Decision("reject", f"{again}: not faster there")
    if confirm.low <= 1:
        return Decision("undecided", f"{again}: not confirmed")
    return Decision("accept", again)


def _line(race: Race) -> str:
    if race.high >= UNBOUNDED:
        return f"{race.ratio:.3f}x, without an interval, in {race.rounds} rounds"
    cached = "" if race.rotated_bytes > race.cache_bytes else ", weights within the cache"
    return (
        f"{race.ratio:.3f}x [{race.low:.3f}, {race.high:.3f}] in {race.rounds} rounds,"
        f" A/A floor {1 + race.floor:.3f}{cached}"
    )
