"""Lines of earlier schemas, as this version reads them. Files are never rewritten: every reader migrates.

Schema 1 has no `seq`, no hypotheses and no state of the device. Its first form kept a race's arms as artefacts only and
a candidate without the hash of its source, so nothing of it can be recalled, but all of it can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from warptile.journal.entries import Entry

SCHEMA = 2

OLDER = "written by an older version"
_UNKNOWN = {
    "source": "unknown",
    "why": OLDER,
    "samples": 0,
    "clock_mhz": None,
    "memory_clock_mhz": None,
    "temperature_c": None,
    "power_w": None,
    "throttle": None,
}
_ADDED: dict[str, dict[str, Any]] = {
    "candidate": {"source": "", "predicted": None, "deadline": None},
    "verdict": {"source": "", "ks": [], "compile_seconds": 0.0, "predicted": None, "resources": None, "verb": "tune"},
    "race": {"predicted": None, "predicted_incumbent": None, "hypothesis": None, "state": _UNKNOWN},
    "decision": {"hypothesis": None, "races": [], "supersedes": None, "layout": ""},
}


def migrated(entry: Mapping[str, Any], run: str, number: int) -> Entry:
    """An entry of any schema up to this one in this one's form, a new dictionary.

    run: the file's; number: the line's in it, which older entries are called by. Fields that an older version did not
    write hold what says so (null, an empty list); what it did write stays.
    """
    found = dict(entry)
    for version in range(found["schema"], SCHEMA):
        found = _STEPS[version](found, run, number)
    return found


def _from_1(entry: Entry, run: str, number: int) -> Entry:
    found: Entry = {**entry, "schema": 2, "seq": number}
    if found.get("run") != run:
        # A fleet's file holds its cards' lines under the names of their own runs.
        found |= {"origin": str(found.get("run", "")), "run": run}
    found = {**_ADDED.get(str(entry["kind"]), {}), **found}
    if found["kind"] == "run" and found.get("event") == "start":
        verb = "fleet" if "fleet" in found else "tune" if "source" in found else ""
        found = {"verb": verb, "command": [], "because": "", "version": "", **found}
    if found["kind"] == "race" and "arms" not in found and isinstance(found.get("race"), dict):
        race = found["race"]
        found["arms"] = [race.get("incumbent"), race.get("challenger")]
        found.setdefault("sources", ["", ""])
    return found


_STEPS: dict[int, Callable[[Entry, str, int], Entry]] = {1: _from_1}
