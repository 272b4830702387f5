"""What a journal line says, built from the contracts' dataclasses.

Every entry is a dictionary with `kind`; `Journal.append` adds `schema`, `time` (UTC), `run` and `seq`, its number
within the run. "RUN:SEQ" refers to it (`ref_of`).
`predicted` is the price a tile had on paper before it ran. `source` is the hash of a candidate's source text and
constants, `artefact` that of what the driver was given. `state` is that of the device while it measured.
docs/journal.md lists every field.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

Entry = dict[str, Any]

KINDS = (
    "run",
    "device",
    "workload",
    "hypothesis",
    "candidate",
    "verdict",
    "race",
    "decision",
    "table",
    "confirmation",
    "fleet",
)


@dataclass(frozen=True)
class Asked:
    """What a person asked for: a run's verb, the words after the program's name, and why (`--because`)."""

    verb: str = ""
    command: tuple[str, ...] = ()
    because: str = ""


@dataclass(frozen=True)
class Prediction:
    """What is expected of a race. ratio: control seconds / arm seconds; seconds: of control and arm; None: not said.

    by: whose number it is ("price", "corrected price", "person"). expect: "gain", "loss", "equal", "refused" or "open".
    reasons: in words.
    """

    ratio: float | None = None
    seconds: tuple[float | None, float | None] = (None, None)
    by: str = "price"
    expect: str = "open"
    reasons: tuple[str, ...] = ()


def ref_of(entry: Mapping[str, Any]) -> str:
    """What other entries call it: "RUN:SEQ"."""
    return f"{entry['run']}:{entry['seq']}"


def run(event: str, identity: Identity | None = None, **facts: Any) -> Entry:
    """A run began, ended or was interrupted (`event`), with whatever facts belong to it."""
    return {"kind": "run", "event": event, "identity": identity, **facts}


def start(identity: Identity | None, asked: Asked, version: str, **facts: Any) -> Entry:
    """A run began. version: of warptile; facts: source, ms, seed, budget and the like."""
    return run("start", identity, **dataclasses.asdict(asked), version=version, **facts)


def device(identity: Identity, limits: Limits, state: DeviceState, ceilings: Ceilings | None = None) -> Entry:
    """What a run runs on, so that its tiles can be priced anew anywhere. ceilings: None where not measured."""
    return {"kind": "device", "identity": identity, "limits": limits, "ceilings": ceilings, "state": state}


def ceilings(identity: Identity, limits: Limits, ceilings: Ceilings) -> Entry:
    """What a device states it can hold, and what it was measured to reach."""
    return {"kind": "run", "event": "ceilings", "identity": identity, "limits": limits, "ceilings": ceilings}


def workload(workload: Workload, ms: Sequence[int]) -> Entry:
    """The matmuls a run is about, and the numbers of tokens it looks at."""
    return {"kind": "workload", "workload": workload, "ms": list(ms)}


def hypothesis(
    identity: Identity,
    problem: Problem,
    arms: tuple[str, str],
    because: str,
    basis: str,
    predicted: Prediction,
    names: Sequence[str] = (),
    supersedes: str | None = None,
) -> Entry:
    """What is believed before a race: that the second of `arms` does to the first what `predicted` says.

    because: in words. basis: whose words: "person", "study" or "price". names: of the arms, in a study.
    supersedes: the last hypothesis about the same arms and problem.
    """
    return {
        "kind": "hypothesis",
        "identity": identity,
        "problem": problem,
        "arms": list(arms),
        "names": list(names),
        "because": because,
        "basis": basis,
        "predicted": predicted,
        "supersedes": supersedes,
    }


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
        "reason": " ".join(reason.split()),
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
    resources: Resources | None = None,
    verb: str = "tune",
) -> Entry:
    """What the proof said of a binary on every k of `ks`; resources: what its compiler reports of it."""
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
        "resources": resources,
        "verb": verb,
    }


def screening(
    identity: Identity, problem: Problem, arms: Sequence[dict[str, Any]], state: DeviceState | None = None
) -> Entry:
    """A screening: arms are {tile, source, seconds (None: not reached), samples, predicted, corrected}; never evidence.

    corrected: what the price corrected by earlier measurements said before this one, {seconds, deviation} or None.
    """
    return {
        "kind": "race",
        "stage": "screen",
        "identity": identity,
        "problem": problem,
        "arms": list(arms),
        "state": state or DeviceState(),
    }


def race(
    identity: Identity,
    stage: str,
    race: Race,
    sources: tuple[str, str],
    predicted: Price | None = None,
    predicted_incumbent: Price | None = None,
    hypothesis: str | None = None,
    state: DeviceState | None = None,
) -> Entry:
    """A race with all its samples. stage: "final", "confirm", "recheck", "pipeline" or "study".

    sources: incumbent's and challenger's; predicted: the challenger's price.
    """
    return {
        "kind": "race",
        "stage": stage,
        "identity": identity,
        "problem": race.challenger.problem,
        "arms": [race.incumbent, race.challenger],
        "sources": list(sources),
        "race": race,
        "predicted": predicted,
        "predicted_incumbent": predicted_incumbent,
        "hypothesis": hypothesis,
        "state": state or DeviceState(),
    }


def decision(
    identity: Identity,
    problem: Problem,
    incumbent: str,
    challenger: str,
    decision: Decision,
    hypothesis: str | None = None,
    races: Sequence[str] = (),
    supersedes: str | None = None,
    layout: str = "",
) -> Entry:
    """What the races (references) of one problem concluded; supersedes: the last decision about it on this device."""
    return {
        "kind": "decision",
        "identity": identity,
        "problem": problem,
        "incumbent": incumbent,
        "challenger": challenger,
        "decision": decision,
        "hypothesis": hypothesis,
        "races": list(races),
        "supersedes": supersedes,
        "layout": layout,
    }


def table(identity: Identity, action: str, key: Any, point: Any = None) -> Entry:
    """A change of a table: "put" a measured point under a key, or "forget" a key."""
    return {"kind": "table", "identity": identity, "action": action, "key": key, "point": point}


def confirmation(identity: Identity | None, model: str, confirmation: Any, right: bool, failed: Sequence[str]) -> Entry:
    """Whether a tuned model is still its file's model. model: the file's name."""
    return {
        "kind": "confirmation",
        "identity": identity,
        "model": model,
        "confirmation": confirmation,
        "right": right,
        "failed": list(failed),
    }


def fleet(event: str, **facts: Any) -> Entry:
    """A fleet's item was done or lost, or its cards agreed or did not (`event`), with the facts of it."""
    return {"kind": "fleet", "event": event, **facts}
