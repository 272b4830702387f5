"""One run's entries about one device, each referring to what it answers and what it supersedes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from warptile import __version__
from warptile.contracts import Decision, DeviceState, Identity, Limits, Price, Problem, Race
from warptile.journal import entries
from warptile.journal.codec import to_json
from warptile.journal.entries import Asked, Entry, Prediction, ref_of
from warptile.journal.reasons import predicted
from warptile.journal.store import Journal
from warptile.telemetry import Watcher
from warptile.telemetry.watch import Watched

STUDY = "study"
"""What stands for a layout in a study's decisions, which put nothing into a table."""


class Record:
    """Writes to `journal` what a run on one device believes, measures and concludes.

    asked: who asked and why. past: entries of earlier runs, in which superseded ones are found. watcher: of the device;
    by default whatever its driver tells, of several of one name by `uuid`.
    """

    def __init__(
        self,
        journal: Journal,
        identity: Identity,
        limits: Limits,
        asked: Asked | None = None,
        past: Iterable[Entry] = (),
        watcher: Watcher | None = None,
        uuid: str = "",
    ) -> None:
        self.journal, self.identity, self.limits = journal, identity, limits
        self.asked = asked or Asked()
        self._watcher = watcher or Watcher.of(identity, limits, uuid)
        self._last: dict[str, str] = {}
        for entry in past:
            if entry["kind"] in ("decision", "hypothesis"):
                self._remember(entry)

    def start(self, **facts: Any) -> None:
        """The run begins: what was asked, and the device as it is."""
        self.append(entries.start(self.identity, self.asked, __version__, **facts))
        self.append(entries.device(self.identity, self.limits, self._watcher.now()))

    def end(self, event: str = "end", **facts: Any) -> None:
        """The run ended, or was interrupted."""
        self.append(entries.run(event, self.identity, **facts))

    def append(self, entry: Entry) -> str:
        """Write any entry; its reference. Raises UnusableInput where it cannot be written."""
        return ref_of(self.journal.append(entry))

    def watching(self) -> AbstractContextManager[Watched]:
        """Watch the device while something is measured."""
        return self._watcher.watching()

    def hypothesis(
        self,
        problem: Problem,
        arms: tuple[str, str],
        prices: tuple[Price | None, Price | None],
        because: str = "",
        names: Sequence[str] = (),
        said: Prediction | None = None,
    ) -> str:
        """What is believed of control and arm before they race; its reference.

        because: a study's words, used where the run was not asked for with a person's. said: in place of what the
        prices predict.
        """
        told = said or predicted(*prices)
        basis = "person" if self.asked.because else "study" if because else "price"
        words = self.asked.because or because or "; ".join(told.reasons)
        entry = entries.hypothesis(self.identity, problem, arms, words, basis, told, names)
        return self._superseding(entry)

    def race(
        self,
        stage: str,
        race: Race,
        sources: tuple[str, str],
        prices: tuple[Price | None, Price | None],
        state: DeviceState | None = None,
        hypothesis: str | None = None,
    ) -> str:
        """A race ended; prices and sources: incumbent's and challenger's. Its reference."""
        return self.append(entries.race(self.identity, stage, race, sources, prices[1], prices[0], hypothesis, state))

    def decision(
        self,
        problem: Problem,
        incumbent: str,
        challenger: str,
        decision: Decision,
        hypothesis: str | None = None,
        races: Sequence[str] = (),
        layout: str = "",
    ) -> str:
        """What the races of one problem concluded; its reference."""
        entry = entries.decision(
            self.identity, problem, incumbent, challenger, decision, hypothesis, races, None, layout
        )
        return self._superseding(entry)

    def _superseding(self, entry: Entry) -> str:
        plain = to_json(entry)
        written = self.journal.append({**plain, "supersedes": self._last.get(_subject(plain))})
        self._remember(written)
        return ref_of(written)

    def _remember(self, entry: Entry) -> None:
        try:
            self._last[_subject(entry)] = ref_of(entry)
        except (KeyError, TypeError, AttributeError):
            return


def _subject(entry: Entry) -> str:
    """What an entry of its kind is about: device and problem; of a hypothesis, and of a study's decision, its arms."""
    who, problem = entry["identity"], {**entry["problem"]}
    problem.pop("count", None)
    for field in dataclasses.fields(Problem):
        if field.default is not dataclasses.MISSING and field.name != "count":
            problem.setdefault(field.name, field.default)
    arms = entry.get("arms")
    if entry["kind"] == "decision" and entry["layout"] == STUDY:
        arms = [entry["incumbent"], entry["challenger"]]
    return json.dumps([entry["kind"], who["device"], who["runtime"], problem, arms], sort_keys=True)
