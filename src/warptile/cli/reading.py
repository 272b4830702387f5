"""A journal's history for a verb, with a line on stderr for whatever of it is left out or was changed."""

from __future__ import annotations

from warptile.cli import show
from warptile.journal import Journal, warning_lines
from warptile.journal.history import History
from warptile.journal.store import Reading


def history_of(journal: Journal) -> History:
    """The journal's history; lines that are unreadable, edited or senseless are told. Raises as `Journal.read`."""
    reading = journal.read()
    for warning in warning_lines(reading.warnings):
        show.err().print(show.line(warning, "yellow"), soft_wrap=True)
    return told(reading)


def told(reading: Reading) -> History:
    """The history of what was read; entries that make no sense are told."""
    history = History.read(reading.entries)
    if history.unread:
        count, first = len(history.unread), history.unread[0]
        words = "1 entry has" if count == 1 else f"{count} entries have"
        out = "is left out" if count == 1 else "are left out"
        line = f"{words} fields that no version writes so and {out}: {first}"
        show.err().print(show.line(line, "yellow"), soft_wrap=True)
    return history
