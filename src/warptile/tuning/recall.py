"""What the journal already knows of this device, driver and compiler, so that a run repeats nothing it has measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from warptile.contracts import Ceilings, DeviceLost, Identity, OutOfMemory, Problem, Race, Timeout, Untimed, Verdict
from warptile.journal import Entry, from_json, ref_of, to_json
from warptile.tables import Key
from warptile.tuning.result import bare
from warptile.tuning.scale import joined
from warptile.tuning.stand import Proof

SourceOf = Callable[[str, Problem], str]
PERHAPS_THE_MACHINE = frozenset({DeviceLost.outcome, OutOfMemory.outcome, Timeout.outcome, Untimed.outcome})


class Recall:
    """Verdicts, screenings, races and rejections of earlier runs with the same identity and proof version.

    Looked up by the hash of a candidate's source, so that a changed kernel is measured anew. What was timed before a
    table's key was forgotten is forgotten too. used: how many answers were given. ceilings: what the device was
    last seen to reach.

    A candidate that was lost, ran out of time or of memory, or could not be timed is out for good the second time: the
    first may have been the machine's doing (another load, a killed worker).
    """

    def __init__(self, entries: Iterable[Entry], identity: Identity, proof: int) -> None:
        self._proofs: dict[str, dict[int, Proof]] = defaultdict(dict)
        self._races: dict[tuple[str, Problem, str, str], tuple[Race, str]] = {}
        self._screenings: dict[Problem, list[dict[str, tuple[str, float]]]] = defaultdict(list)
        self._rejections: dict[tuple[str, Problem], list[tuple[str, str, float]]] = defaultdict(list)
        self.ceilings: Ceilings | None = None
        self.used = 0
        who = to_json(identity)
        for entry in entries:
            if entry.get("identity") == who:
                try:
                    self._take(entry, proof)
                except (ValueError, KeyError, TypeError):
                    continue

    def _take(self, entry: Entry, proof: int) -> None:
        if entry["kind"] == "verdict":
            verdict = from_json(Verdict, entry["verdict"])
            # A single proof or a study draws its weights; a tune also proves on the model's own.
            if verdict.version == proof and (entry["verb"] == "tune" or not verdict.right):
                found = Proof(verdict, entry["artefact"], float(entry["compile_seconds"]))
                self._proofs[entry["source"]].update({int(k): found for k in entry["ks"]})
        elif entry["kind"] == "race" and entry["stage"] == "screen":
            measured = {
                a["tile"]: (a["source"], float(a["seconds"])) for a in entry["arms"] if a["seconds"] is not None
            }
            self._screenings[bare(from_json(Problem, entry["problem"]))].append(measured)
        elif entry["kind"] == "race":
            race = from_json(Race, entry["race"])
            first, second = entry["sources"]
            self._races[entry["stage"], bare(race.challenger.problem), first, second] = (race, ref_of(entry))
        elif entry["kind"] == "candidate":
            place = (entry["source"], bare(from_json(Problem, entry["problem"])))
            given = float(entry["deadline"]) if entry["outcome"] == Timeout.outcome else float("inf")
            self._rejections[place].append((entry["outcome"], entry["reason"], given))
        elif entry["kind"] == "run" and entry["event"] == "ceilings":
            self.ceilings = from_json(Ceilings, entry["ceilings"])
        elif entry["kind"] == "table" and entry["action"] == "forget":
            key = from_json(Key, entry["key"])
            for problem in [p for p in self._screenings if _within(p, key)]:
                del self._screenings[problem]
            for at in [at for at in self._races if _within(at[1], key)]:
                del self._races[at]

    def proved(self, source: str) -> bool:
        """Whether anything was proved of this source."""
        return source in self._proofs

    def proof(self, source: str, ks: Iterable[int]) -> Proof | None:
        """What the proof said of this source; None where it has not seen one of `ks` and found nothing wrong."""
        known, wanted = self._proofs.get(source, {}), list(ks)
        found = [known[k] for k in wanted if k in known]
        wrong = [p for p in found if not p.verdict.right]
        if wrong or (found and len(found) == len(wanted)):
            self.used += 1
            return (wrong or found)[0]
        return None

    def race(self, stage: str, problem: Problem, incumbent: str, challenger: str) -> tuple[Race, str] | None:
        """The last race of these two sources on this shape, in this order, and the reference of its entry."""
        found = self._races.get((stage, bare(problem), incumbent, challenger))
        self.used += found is not None
        return found

    def rejection(self, source: str, problem: Problem, deadline: float) -> str | None:
        """Why a candidate was out, by the hash of its source; not where it timed out with less than `deadline`."""
        found = [each for each in self._rejections.get((source, bare(problem)), []) if each[2] >= deadline]
        if not found or (len(found) == 1 and found[0][0] in PERHAPS_THE_MACHINE):
            return None
        self.used += 1
        return f"{found[-1][0]}: {found[-1][1]}"

    def screened(self, problem: Problem, source_of: SourceOf) -> dict[str, float]:
        """Tiles whose source has not changed since, and their seconds on the last screening's scale.

        A screening's tiles are comparable with each other only; two are joined as `tuning.scale` says.
        """
        known: dict[str, float] = {}
        for screening in self._screenings.get(bare(problem), []):
            current = {t: s for t, (source, s) in screening.items() if _same(source_of, t, problem, source)}
            known = joined(known, current)
        self.used += len(known)
        return known


def _within(problem: Problem, key: Key) -> bool:
    return Key.of(problem, key.layout) == key


def _same(source_of: SourceOf, tile: str, problem: Problem, source: str) -> bool:
    return source_of(tile, problem) == source
