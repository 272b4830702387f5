"""A study on a device: every arm proved, then all raced in one paired race a problem against the control."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Protocol

from scipy.stats import spearmanr

from warptile.contracts import CandidateRejected, Decision, DeviceState, Identity, Limits, Problem, Race, UnusableInput
from warptile.journal import Prediction
from warptile.race import decide
from warptile.studies.paper import Paper, PaperRow, paper
from warptile.studies.study import Study
from warptile.tuning.notes import Book
from warptile.tuning.stand import Proof

ROUNDS = 40
PROVE_DEADLINE_S = 120.0
RACE_SHARE = 0.6


class StudyStand(Protocol):
    """One open device, as a study needs it."""

    def describe(self) -> tuple[Limits, Identity]:
        """Limits and identity of the device."""
        ...

    def prove(self, tile: str, problems: Sequence[Problem], seed: int, deadline: float) -> Proof:
        """Whether a tile is right on problems."""
        ...

    def race_all(
        self,
        problem: Problem,
        incumbent: str,
        challengers: Sequence[str],
        proved: Mapping[str, int],
        seconds: float,
        rounds: int,
        seed: int,
        deadline: float,
    ) -> list[Race]:
        """One paired race of all challengers against the incumbent."""
        ...


@dataclass(frozen=True)
class MeasuredRow:
    """An arm on a problem. race: against the control, None where the arm is refused, wrong or failed (`outcome`,
    `detail`).

    outcome: "raced", "control", "same tile" (as the control's, or as another arm's whose race it shares), or the word
    the journal has for a rejection.
    """

    arm: str
    problem: str
    matmul: Problem
    tile: str
    outcome: str
    detail: str
    race: Race | None


@dataclass(frozen=True)
class MeasuredArm:
    """An arm over the problems it was raced on: geometric means of control / arm, [low, high] from the races' own."""

    arm: str
    place: int
    ratio: float
    low: float
    high: float
    problems: int


@dataclass(frozen=True)
class Measured:
    """A study measured beside its paper table. order: arm names, fastest first.

    spearman: of the arms' ratios on paper and measured, over the problems each ran; None with fewer than three arms.
    """

    study: str
    identity: Identity
    size: str
    rows: tuple[MeasuredRow, ...]
    arms: tuple[MeasuredArm, ...]
    order: tuple[str, ...]
    expected: tuple[str, ...]
    paper: Paper
    spearman: float | None = None


def measure(
    study: Study,
    stand: StudyStand,
    seconds: float,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
    book: Book | None = None,
) -> Measured:
    """Prove and race a study's arms in about `seconds`, shared between its problems.

    book: writes a hypothesis for every arm on every problem, and what became of it, into the journal.
    Raises UnusableInput where no arm fits the device or the control fails its proof.
    """
    say = progress or (lambda line: None)
    limits, identity = stand.describe()
    table = paper(study, limits)
    rows: list[MeasuredRow] = []
    for problem in study.problems:
        mine = [row for row in table.rows if row.problem == problem.name]
        rows += _problem(study, stand, problem.on(limits), mine, seconds / len(study.problems), seed, say, book)
    arms = _summary(study, rows)
    order = tuple(arm.arm for arm in arms)
    return Measured(
        study.name, identity, table.size, tuple(rows), arms, order, study.expected, table, _spearman(arms, table)
    )


def _problem(
    study: Study,
    stand: StudyStand,
    problem: Problem,
    planned: Sequence[PaperRow],
    seconds: float,
    seed: int,
    say: Callable[[str], None],
    book: Book | None,
) -> list[MeasuredRow]:
    """The rows of one problem: tiles proved once each, the control's first, then one race of all that are right."""
    outcomes: dict[str, tuple[str, str]] = {}
    proved: dict[str, int] = {}
    control = next((row.tile for row in planned if row.arm == study.control), "")
    if not control:
        return []
    believed = _believed(study, problem, planned, control, book) if book is not None else {}
    for row in sorted(planned, key=lambda row: row.arm != study.control):
        if row.broken:
            outcomes[row.tile] = ("refused", row.broken[0].text())
        if row.tile in outcomes or row.tile in proved:
            continue
        say(f"proving {row.arm} on {row.problem}")
        outcome, detail, binary = _proved(stand, row.tile, problem, seed, book)
        if outcome:
            outcomes[row.tile] = (outcome, detail)
        else:
            proved[row.tile] = binary
        if row.arm == study.control and outcome:
            raise UnusableInput(f"study {study.name}: control {row.arm} on {row.problem} is {outcome}: {detail}")
    challengers = [tile for tile in proved if tile != control]
    say(f"racing {len(challengers)} arms against {study.control} on {planned[0].problem}")
    races: dict[str, Race] = {}
    if challengers:
        share = RACE_SHARE * seconds
        deadline = 3 * share + PROVE_DEADLINE_S
        with book.record.watching() if book is not None else nullcontext() as watched:
            found = stand.race_all(problem, control, challengers, proved, share, ROUNDS, seed, deadline)
        races = {race.challenger.tile: race for race in found}
    if book is not None:
        state = watched.state if challengers and watched is not None else None
        _concluded(problem, control, believed, outcomes, races, state, book)
    rows: list[MeasuredRow] = []
    seen: set[str] = set()
    for row in planned:
        outcome, detail = outcomes.get(row.tile, ("raced", ""))
        if row.tile == control:
            outcome = "control" if row.arm == study.control else "same tile"
        elif row.tile in seen and outcome == "raced":
            outcome = "same tile"
        seen.add(row.tile)
        rows.append(MeasuredRow(row.arm, row.problem, problem, row.tile, outcome, detail, races.get(row.tile)))
    return rows


def _believed(study: Study, problem: Problem, planned: Sequence[PaperRow], control: str, book: Book) -> dict[str, str]:
    """The hypotheses about a problem's arms, written before anything runs: references by tile."""
    against = next((row.price for row in planned if row.arm == study.control), None)
    written: dict[str, str] = {}
    for row in planned:
        arm = study.arm(row.arm)
        if row.tile == control or row.tile in written:
            continue
        seconds = (None if against is None else against.seconds, None if row.price is None else row.price.seconds)
        expect = "refused" if row.broken else arm.expect if arm.against in ("", study.control) else "open"
        reasons = tuple(rule.text() for rule in row.broken)
        said = Prediction(row.ratio, seconds, "price", expect, reasons)
        because = " ".join((arm.why or study.hypothesis).split())
        written[row.tile] = book.hypothesis(problem, control, row.tile, because, (study.control, arm.name), said)
    return written


def _concluded(
    problem: Problem,
    control: str,
    believed: Mapping[str, str],
    outcomes: Mapping[str, tuple[str, str]],
    races: Mapping[str, Race],
    state: DeviceState | None,
    book: Book,
) -> None:
    """Every hypothesis's race and decision; a study's race is its only one, so that it accepts nothing."""
    for tile, hypothesis in believed.items():
        refs = [book.race("study", races[tile], hypothesis, state)] if tile in races else []
        told = decide(races[tile]) if tile in races else Decision("reject", ": ".join(outcomes.get(tile, ("out", ""))))
        book.study_decision(problem, control, tile, told, hypothesis, refs)


def _proved(stand: StudyStand, tile: str, problem: Problem, seed: int, book: Book | None) -> tuple[str, str, int]:
    """(outcome, detail, binary's id); outcome is empty where the proof says right."""
    try:
        proof = stand.prove(tile, [problem], seed, PROVE_DEADLINE_S)
    except CandidateRejected as error:
        if book is not None:
            book.reject(tile, problem, error, PROVE_DEADLINE_S)
        return error.outcome, str(error), 0
    if book is not None:
        book.proof(tile, problem, [problem.k], proof)
    verdict = proof.verdict
    return ("", "", verdict.binary) if verdict.right else ("wrong", f"{verdict.failed}: {verdict.detail}", 0)


def _summary(study: Study, rows: Sequence[MeasuredRow]) -> tuple[MeasuredArm, ...]:
    found = []
    for arm in study.arms:
        mine = [row for row in rows if row.arm == arm.name]
        logs = [[0.0] * 3 if row.race is None else _logs(row.race) for row in mine if row.race or _is_control(row)]
        if logs and len(logs) == len(mine):
            ratio, low, high = (math.exp(sum(column) / len(column)) for column in zip(*logs, strict=True))
            found.append((arm.name, ratio, low, high, len(logs)))
    place = {name: i for i, name in enumerate(study.expected)}
    found.sort(key=lambda each: (-each[1], place.get(each[0], len(place))))
    return tuple(
        MeasuredArm(name, i, ratio, low, high, count) for i, (name, ratio, low, high, count) in enumerate(found, 1)
    )


def _spearman(arms: Sequence[MeasuredArm], table: Paper) -> float | None:
    priced = {arm.arm: arm.ratio for arm in table.arms if arm.ratio is not None}
    both = [(priced[arm.arm], arm.ratio) for arm in arms if arm.arm in priced]
    if len(both) < 3 or any(len(set(column)) < 2 for column in zip(*both, strict=True)):
        return None
    return float(spearmanr([paper for paper, _ in both], [measured for _, measured in both]).statistic)


def _is_control(row: MeasuredRow) -> bool:
    """Whether the row's tile is the control's own: its ratio is 1 by definition."""
    return row.outcome in ("control", "same tile") and row.race is None


def _logs(race: Race) -> list[float]:
    return [math.log(value) for value in (race.ratio, race.low, race.high)]
