"""What a journal line says, built from the contracts' dataclasses.

Every entry is a dictionary with `kind`; `Journal.append` adds `schema`, `time` (UTC) and `run`.
`predicted` is the price a tile had on paper before it ran: the hypothesis that the measurement answers.
`source` is the hash of a candidate's source text and constants, `artefact` that of what the driver was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warptile.contracts import Decision, Identity, Price, Problem, Race, Verdict, Workload

Entry = dict[str, Any]

KINDS = ("run", "workload", "candidate", "verdict", "race", "decision", "table", "fleet")


def run(event: str, identity: Identity | None = None, **facts: Any) -> Entry:
    """A run began, ended or was interrupted (`event`), with whatever facts belong to it."""
    return {"kind": "run", "event": event, "identity": identity, **facts}


def workload(workload: Workload, ms: Sequence[int]) -> Entry:
    """The matmuls a run is about, and the numbers of tokens it looks at."""
    return {"kind": "workload", "workload": workload, "ms": list(ms)}


def candidate(
    identity: Identity,
    tile: str,
    problem: Problem,
    outcome: str,
    reason: str,
    source: str = "",
    predicted: Price | None = None,
    deadline: float | None = None,
) -> Entry:
    """A candidate that is out before a race: `outcome` is the error's word, `reason` its line.

    deadline: seconds the step was given.
    """
    return {
        "kind": "candidate",
        "identity": identity,
        "tile": tile,
        "problem": problem,
        "outcome": outcome,
        "reason": reason,
        "source": source,
        "predicted": predicted,
        "deadline": deadline,
    }


def verdict(
    identity: Identity,
    tile: str,
    problem: Problem,
    verdict: Verdict,
    source: str,
    artefact: str,
    ks: Sequence[int],
    compile_seconds: float,
    predicted: Price | None = None,
) -> Entry:
    """What the proof said of a binary on every k of `ks`."""
    return {
        "kind": "verdict",
        "identity": identity,
        "tile": tile,
        "problem": problem,
        "verdict": verdict,
        "source": source,
        "artefact": artefact,
        "ks": list(ks),
        "compile_seconds": compile_seconds,
        "predicted": predicted,
    }


def screening(identity: Identity, problem: Problem, arms: Sequence[dict[str, Any]]) -> Entry:
    """A screening: arms are {tile, source, seconds (None: not reached), samples, predicted, corrected}; never evidence.

    corrected: what the price corrected by earlier measurements said before this one, {seconds, deviation} or None.
    """
    return {"kind": "race", "stage": "screen", "identity": identity, "problem": problem, "arms": list(arms)}


def race(identity: Identity, stage: str, race: Race, sources: tuple[str, str], predicted: Price | None = None) -> Entry:
    """A race with all its samples. stage: "final", "confirm" or "recheck"; sources: incumbent's and challenger's."""
    return {
        "kind": "race",
        "stage": stage,
        "identity": identity,
        "problem": race.challenger.problem,
        "arms": [race.incumbent, race.challenger],
        "sources": list(sources),
        "race": race,
        "predicted": predicted,
    }


def decision(identity: Identity, problem: Problem, incumbent: str, challenger: str, decision: Decision) -> Entry:
    """What the races of one problem concluded."""
    return {
        "kind": "decision",
        "identity": identity,
        "problem": problem,
        "incumbent": incumbent,
        "challenger": challenger,
        "decision": decision,
    }


def table(identity: Identity, action: str, key: Any, point: Any = None) -> Entry:
    """A change of a table: "put" a measured point under a key, or "forget" a key."""
    return {"kind": "table", "identity": identity, "action": action, "key": key, "point": point}


def fleet(event: str, **facts: Any) -> Entry:
    """A fleet's item was done or lost, or its cards agreed or did not (`event`), with the facts of it."""
    return {"kind": "fleet", "event": event, **facts}
