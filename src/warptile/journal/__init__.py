"""What was believed, tried, measured and concluded: append-only JSON lines, one file a run, the truth.

`store.Journal` writes and reads the lines, `entries` builds them from the contracts' dataclasses, `codec` turns
dataclasses into JSON and back, `index` is an SQLite index over the lines that can be rebuilt at any time.
"""

from warptile.journal.codec import from_json, to_json
from warptile.journal.entries import KINDS, Entry
from warptile.journal.store import SCHEMA, Journal, JournalWarning, Reading, warning_lines

__all__ = ["KINDS", "SCHEMA", "Entry", "Journal", "JournalWarning", "Reading", "from_json", "to_json", "warning_lines"]
