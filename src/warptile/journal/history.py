"""A journal as typed values: what was believed, measured and concluded, in order of time.

history = History.of(Journal(folder))
for timing in history.timings: ...
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from warptile.contracts import (
    Ceilings,
    Decision,
    DeviceState,
    Identity,
    Limits,
    Price,
    Problem,
    Race,
    Resources,
    Verdict,
    Workload,
)
from warptile.journal.codec import from_json
from warptile.journal.entries import Entry, Prediction, ref_of
from warptile.journal.facts import (
    Believed,
    Confirmed,
    Decided,
    Kept,
    Proved,
    Raced,
    Refused,
    Run,
    Timing,
)
from warptile.journal.sound import sound_problem, sound_race, sound_seconds
from warptile.journal.store import Journal

T = TypeVar("T")
SCREEN = "screen"


@dataclass
class History:
    """Everything readable of a journal. unread: refs of entries whose fields no version writes so."""

    timings: tuple[Timing, ...] = ()
    races: tuple[Raced, ...] = ()
    verdicts: tuple[Proved, ...] = ()
    candidates: tuple[Refused, ...] = ()
    hypotheses: tuple[Believed, ...] = ()
    decisions: tuple[Decided, ...] = ()
    points: tuple[Kept, ...] = ()
    confirmations: tuple[Confirmed, ...] = ()
    runs: dict[str, Run] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @classmethod
    def of(cls, journal: Journal) -> Self:
        """The history of a journal's folder. Raises UnusableInput as `Journal.read` does."""
        return cls.read(journal.read().entries)

    @classmethod
    def read(cls, entries: Iterable[Entry]) -> Self:
        """The history of entries in this schema's form, as `Journal.read` gives them."""
        found: dict[str, list[Any]] = {name: [] for name in _LISTS}
        history = cls()
        whole = list(entries)
        # A card's lines in a fleet's file refer to each other by what they were called in the card's own journal.
        names = {entry["origin"]: ref_of(entry) for entry in whole if "origin" in entry}
        for entry in (_renamed(each, names) if names else each for each in whole):
            try:
                for name, value in _READERS.get(entry["kind"], _nothing)(entry, history):
                    found[name].append(value)
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
                found["unread"].append(ref_of(entry))
        for name in _LISTS:
            setattr(history, name, tuple(found[name]))
        return history

    def exactly(self, device: str, runtime: str) -> History:
        """What is of the device of exactly this name through this runtime."""

        def mine(each: Any) -> bool:
            who: Identity | None = getattr(each, "identity", None)
            return who is None or (who.device, who.runtime) == (device, runtime)

        return self._narrowed(mine)

    def only(self, device: str | None = None, runtime: str | None = None, format: str | None = None) -> History:
        """What is of devices whose name holds `device` (in any case), of a runtime and of a format of weights."""

        def wanted(each: Any) -> bool:
            who: Identity | None = getattr(each, "identity", None)
            if who is not None and device is not None and device.casefold() not in who.device.casefold():
                return False
            if who is not None and runtime is not None and runtime != who.runtime:
                return False
            problem = getattr(each, "problem", None) or _problem_of(each)
            return format is None or problem is None or problem.format.casefold() == format.casefold()

        return self._narrowed(wanted)

    def _narrowed(self, wanted: Callable[[Any], bool]) -> History:
        lists = {name: tuple(each for each in getattr(self, name) if wanted(each)) for name in _LISTS}
        return History(**lists, runs=self.runs)


_LISTS = tuple(f.name for f in dataclasses.fields(History) if f.name != "runs")
_Found = list[tuple[str, Any]]


def _renamed(entry: Entry, names: Mapping[str, str]) -> Entry:
    """An entry whose references are those of this journal."""
    refs: dict[str, Any] = {}
    for name in ("hypothesis", "supersedes"):
        if isinstance(entry.get(name), str):
            refs[name] = names.get(entry[name], entry[name])
    if isinstance(entry.get("races"), list):
        refs["races"] = [names.get(each, each) if isinstance(each, str) else each for each in entry["races"]]
    return {**entry, **refs}


def _problem_of(each: Any) -> Problem | None:
    if isinstance(each, Raced):
        return each.race.challenger.problem
    if isinstance(each, Kept):
        return Problem(str(each.key.get("format", "")), 0, 0, 0)
    return None


def _bare(value: Any) -> Problem:
    return dataclasses.replace(sound_problem(from_json(Problem, value)), count=1)


def _maybe(kind: type[T], value: Any) -> T | None:
    return None if value is None else from_json(kind, value)


def _noted(entry: Mapping[str, Any]) -> tuple[str, str, Identity]:
    return ref_of(entry), str(entry.get("time", "")), from_json(Identity, entry["identity"])


def _nothing(entry: Entry, history: History) -> _Found:
    return []


def _race(entry: Entry, history: History) -> _Found:
    noted = _noted(entry)
    if entry["stage"] == SCREEN:
        problem = _bare(entry["problem"])
        return [
            ("timings", Timing(*noted, problem, str(arm["tile"]), str(arm.get("source", "")),
                               sound_seconds(float(arm["seconds"])), int(arm.get("samples") or 0), SCREEN,
                               _maybe(Price, arm.get("predicted"))))
            for arm in entry["arms"]
            if arm["seconds"] is not None
        ]  # fmt: skip
    race, stage = sound_race(from_json(Race, entry["race"])), str(entry["stage"])
    prices = (_maybe(Price, entry["predicted_incumbent"]), _maybe(Price, entry["predicted"]))
    state = from_json(DeviceState, entry["state"])
    found: _Found = [("races", Raced(*noted, stage, race, prices[1], prices[0], entry["hypothesis"], state))]
    arms = ((race.incumbent, race.incumbent_seconds), (race.challenger, race.challenger_seconds))
    for (arm, seconds), source, price in zip(arms, entry["sources"], prices, strict=True):
        if race.rounds and (arm is race.incumbent or race.incumbent.tile != race.challenger.tile):
            problem = dataclasses.replace(arm.problem, count=1)
            found.append(
                ("timings", Timing(*noted, problem, arm.tile, str(source), seconds, race.rounds, stage, price))
            )
    return found


def _verdict(entry: Entry, history: History) -> _Found:
    proved = Proved(
        *_noted(entry), from_json(str, entry["tile"]), _bare(entry["problem"]), from_json(Verdict, entry["verdict"]),
        str(entry.get("artefact", "")), float(entry["compile_seconds"]), _maybe(Price, entry["predicted"]),
        _maybe(Resources, entry["resources"]), str(entry["verb"]),
    )  # fmt: skip
    return [("verdicts", proved)]


def _candidate(entry: Entry, history: History) -> _Found:
    tile, outcome, reason = (from_json(str, entry[name]) for name in ("tile", "outcome", "reason"))
    problem, price = _bare(entry["problem"]), _maybe(Price, entry["predicted"])
    return [("candidates", Refused(*_noted(entry), tile, problem, outcome, reason, price))]


def _hypothesis(entry: Entry, history: History) -> _Found:
    control, arm = (str(tile) for tile in entry["arms"])
    names = tuple(str(name) for name in entry["names"])
    said = from_json(Prediction, entry["predicted"])
    believed = Believed(
        *_noted(entry), _bare(entry["problem"]), control, arm, names, str(entry["because"]), str(entry["basis"]), said,
        entry["supersedes"],
    )  # fmt: skip
    return [("hypotheses", believed)]


def _decision(entry: Entry, history: History) -> _Found:
    decided = Decided(
        *_noted(entry), _bare(entry["problem"]), str(entry["incumbent"]), str(entry["challenger"]),
        from_json(Decision, entry["decision"]), entry["hypothesis"], tuple(str(r) for r in entry["races"]),
        entry["supersedes"], str(entry["layout"]),
    )  # fmt: skip
    return [("decisions", decided)]


def _table(entry: Entry, history: History) -> _Found:
    point = None if entry["action"] == "forget" else dict(entry["point"])
    return [("points", Kept(*_noted(entry), dict(entry["key"]), point))]


def _confirmation(entry: Entry, history: History) -> _Found:
    failed = tuple(str(reason) for reason in entry["failed"])
    facts = dict(entry["confirmation"])
    right = bool(entry["right"])
    noted = (ref_of(entry), str(entry["time"]), _maybe(Identity, entry["identity"]))
    return [("confirmations", Confirmed(*noted, str(entry["model"]), right, failed, facts))]


def _run(entry: Entry, history: History) -> _Found:
    run = history.runs.setdefault(entry["run"], Run(entry["run"]))
    run.identity = _maybe(Identity, entry.get("identity")) or run.identity
    if entry["event"] == "start":
        run.time, run.verb = str(entry["time"]), str(entry["verb"])
        run.command = tuple(str(word) for word in entry["command"])
        run.because, run.version = str(entry["because"]), str(entry["version"])
        known = ("schema", "time", "run", "seq", "check", "kind", "event", "identity")
        run.facts = {name: value for name, value in entry.items() if name not in known}
    elif entry["event"] in ("end", "interrupted"):
        run.ended = entry["event"]
    elif entry["event"] == "ceilings":
        run.limits, run.ceilings = from_json(Limits, entry["limits"]), from_json(Ceilings, entry["ceilings"])
    return []


def _device(entry: Entry, history: History) -> _Found:
    run = history.runs.setdefault(entry["run"], Run(entry["run"]))
    run.identity = from_json(Identity, entry["identity"])
    run.limits, run.ceilings = from_json(Limits, entry["limits"]), _maybe(Ceilings, entry["ceilings"])
    return []


def _workload(entry: Entry, history: History) -> _Found:
    run = history.runs.setdefault(entry["run"], Run(entry["run"]))
    run.workload = from_json(Workload, entry["workload"])
    return []


_READERS: dict[str, Callable[[Entry, History], _Found]] = {
    "race": _race,
    "verdict": _verdict,
    "candidate": _candidate,
    "hypothesis": _hypothesis,
    "decision": _decision,
    "table": _table,
    "confirmation": _confirmation,
    "run": _run,
    "device": _device,
    "workload": _workload,
}
