"""What a journal line says, built from the contracts' dataclasses.

Every entry is a dictionary with `kind`; `Journal.append` adds `schema`, `time` (UTC) and `run`.
`predicted` is the price a tile had on paper before it ran: the hypothesis that the measurement answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from warptile.contracts import Decision, Identity, Price, Problem, Race, Verdict, Workload

Entry = dict[str, Any]

KINDS = ("run", "workload", "candidate", "verdict", "race", "decision", "table")


def run(event: str, identity: Identity | None = None, **facts: Any) -> Entry:
    """A run began, ended or was interrupted (`event`), with whatever facts belong to it."""
    return {"kind": "run", "event": event, "identity": identity, **facts}


def workload(workload: Workload, ms: Sequence[int]) -> Entry:
    """The matmuls a run is about, and the numbers of tokens it looks at."""
    return {"kind": "workload", "workload": workload, "ms": list(ms)}


def candidate(
    identity: Identity, tile: str, problem: Problem, outcome: str, reason: str, predicted: Price | None = None
) -> Entry:
    """A candidate that is out before a race: `outcome` is the error's word, `reason` its line."""
    return {
        "kind": "candidate",
        "identity": identity,
        "tile": tile,
        "problem": problem,
        "outcome": outcome,
        "reason": reason,
        "predicted": predicted,
    }


def verdict(
    identity: Identity, tile: str, problem: Problem, artefact: str, verdict: Verdict, facts: Mapping[str, Any]
) -> Entry:
    """What the proof said of the binary with key `artefact`; facts: seconds it took, compile seconds."""
    return {
        "kind": "verdict",
        "identity": identity,
        "tile": tile,
        "problem": problem,
        "artefact": artefact,
        "verdict": verdict,
        **facts,
    }


def race(
    identity: Identity, race: Race, stage: str, artefacts: tuple[str, str], predicted: Price | None = None
) -> Entry:
    """A race with all its samples. stage: "screen", "final" or "recheck"; artefacts: incumbent's and challenger's."""
    return {
        "kind": "race",
        "identity": identity,
        "stage": stage,
        "race": race,
        "artefacts": list(artefacts),
        "predicted": predicted,
    }


def decision(identity: Identity, problem: Problem, incumbent: str, challenger: str, decision: Decision) -> Entry:
    """What a race concluded."""
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
