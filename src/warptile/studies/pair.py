"""One hypothesis, two arms: proved, raced in pairs, raced again on fresh buffers where the first race says faster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warptile.contracts import CandidateRejected, Decision, Problem, Race, UnusableInput
from warptile.journal import Prediction
from warptile.journal.reasons import expectation, predicted
from warptile.race import decide
from warptile.tuning.notes import Book
from warptile.tuning.stand import Proof, Stand

ROUNDS = 40
PROVE_DEADLINE_S = 120.0
RACE_SHARE = 0.35
"""Of the time given, for each of the two races; the rest is for the proofs."""


@dataclass(frozen=True)
class Recorded:
    """An interval measured before, with the A/A floor of its race: does a new one agree?"""

    low: float
    high: float
    floor: float = 0.0

    def agreement(self, races: tuple[Race, ...]) -> str:
        """ "overlaps", "overlaps within the A/A floors" or "does not overlap" the interval that `races` span."""
        low, high = min(race.low for race in races), max(race.high for race in races)
        if low <= self.high and self.low <= high:
            return "overlaps"
        floor = 1 + self.floor + max(race.floor for race in races)
        if low <= self.high * floor and self.low / floor <= high:
            return "overlaps within the A/A floors"
        return "does not overlap"


@dataclass(frozen=True)
class Pair:
    """What to race: the second arm against the first, the control. expect: a person's own ratio, None for none."""

    control: str
    arm: str
    problem: Problem
    expect: float | None = None
    rounds: int = ROUNDS


@dataclass(frozen=True)
class PairResult:
    """One hypothesis answered. races: the first and, where it said faster, that on fresh buffers; none where the arm
    was out. ref: the journal's entry of the decision; hypothesis: of the hypothesis."""

    pair: Pair
    because: str
    predicted: Prediction
    races: tuple[Race, ...]
    decision: Decision
    hypothesis: str
    ref: str


def measure_pair(
    pair: Pair,
    stand: Stand,
    book: Book,
    seconds: float,
    seed: int = 0,
    say: Callable[[str], None] = lambda line: None,
) -> PairResult:
    """Write the hypothesis, prove both arms, race them in about `seconds`, decide, and write all of it down.

    Raises UnusableInput where a tile is not valid for the problem here, or the control fails its proof.
    """
    problem = pair.problem
    for tile in (pair.control, pair.arm):
        if book.price(tile, problem) is None:
            kernel, parsed = book.parse(tile)
            rule = kernel.broken_rules(parsed, problem, book.record.limits)[0]
            raise UnusableInput(f"{tile} is not valid for {problem.text()} here: {rule.text()}")
    said = _prediction(pair, book)
    believed = book.hypothesis(problem, pair.control, pair.arm, said=said)
    proofs: dict[str, Proof] = {}
    for tile in dict.fromkeys((pair.control, pair.arm)):
        say(f"proving {tile}")
        why = _proved(tile, problem, stand, book, seed, proofs)
        if why and tile == pair.control:
            raise UnusableInput(f"the control {tile} is out: {why}")
        if why:
            return _concluded(pair, book, said, believed, (), Decision("reject", why), ())
    races: list[Race] = []
    refs: list[str] = []
    for stage, fresh in (("study", False), ("confirm", True)):
        if stage == "confirm" and not races[0].low > 1 + races[0].floor:
            break
        say(f"racing {pair.rounds} rounds" + (", on fresh buffers" if fresh else ""))
        ids = {tile: proof.verdict.binary for tile, proof in proofs.items()}
        share = RACE_SHARE * seconds
        try:
            with book.record.watching() as watched:
                race = stand.race(
                    problem, pair.control, pair.arm, ids, share, pair.rounds, seed + fresh, 30 + 10 * share, fresh
                )
        except CandidateRejected as error:
            book.reject(pair.arm, problem, error, 30 + 10 * share)
            told = Decision("reject", f"{error.outcome}: {error}")
            return _concluded(pair, book, said, believed, tuple(races), told, tuple(refs))
        races.append(race)
        refs.append(book.race(stage, race, believed, watched.state))
    return _concluded(pair, book, said, believed, tuple(races), decide(*races), tuple(refs))


def _prediction(pair: Pair, book: Book) -> Prediction:
    """The person's ratio where there is one, with the prices beside it; else the prices'."""
    told = predicted(book.price(pair.control, pair.problem), book.price(pair.arm, pair.problem))
    if pair.expect is None:
        return told
    return Prediction(pair.expect, told.seconds, "person", expectation(pair.expect), told.reasons)


def _proved(tile: str, problem: Problem, stand: Stand, book: Book, seed: int, proofs: dict[str, Proof]) -> str:
    """Why a tile is out, "" where it is right; its proof is then in `proofs`."""
    try:
        proof = stand.prove(tile, [problem], seed, PROVE_DEADLINE_S)
    except CandidateRejected as error:
        book.reject(tile, problem, error, PROVE_DEADLINE_S)
        return f"{error.outcome}: {error}"
    book.proof(tile, problem, [problem.k], proof)
    proofs[tile] = proof
    return "" if proof.verdict.right else f"wrong: {proof.verdict.failed}: {proof.verdict.detail}"


def _concluded(
    pair: Pair,
    book: Book,
    said: Prediction,
    believed: str,
    races: tuple[Race, ...],
    told: Decision,
    refs: tuple[str, ...],
) -> PairResult:
    ref = book.study_decision(pair.problem, pair.control, pair.arm, told, believed, refs)
    because = book.record.asked.because or "; ".join(said.reasons)
    return PairResult(pair, because, said, races, told, believed, ref)
