"""What was believed, tried, measured and concluded: append-only JSON lines, one file a run, the truth.

`store.Journal` writes and reads the lines, `entries` builds them from the contracts' dataclasses, `codec` turns
dataclasses into JSON and back, `migrations` reads lines of earlier schemas, `history` gives typed entries, `record`
writes one run's entries about one device with their references, `index` is an SQLite index over the lines that can be
rebuilt at any time, `merge` takes in other machines' files.
"""

from warptile.journal.codec import from_json, to_json
from warptile.journal.entries import KINDS, Asked, Entry, Prediction, ref_of
from warptile.journal.migrations import SCHEMA
from warptile.journal.store import Journal, JournalWarning, Reading, warning_lines

__all__ = [
    "KINDS",
    "SCHEMA",
    "Asked",
    "Entry",
    "Journal",
    "JournalWarning",
    "Prediction",
    "Reading",
    "from_json",
    "ref_of",
    "to_json",
    "warning_lines",
]
