"""What was tried, as sections of the document: hypotheses, what was out before a race, how the prices did."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from warptile.handover.markdown import cell, ratio, ref, table
from warptile.handover.parts import Part
from warptile.handover.rows import Row
from warptile.race.statistics import UNBOUNDED
from warptile.record import records_of
from warptile.words import tile as short_tile
from warptile.workloads.texts import words_of

SHOWN = 6
SURPRISES = 8
LEAST_SURPRISE = 1.5


def hypotheses(part: Part) -> list[str]:
    """Every row with its answer, then why each was believed."""
    if not part.rows:
        return []
    counts = Counter(row.answer for row in part.rows)
    said = ", ".join(f"{number} {answer}" for answer, number in counts.most_common())
    lines = [f"{len(part.rows)} of them, rejected ones included: {said}."]
    if not all(row.written for row in part.rows):
        lines.append(
            "Those marked * are of a version that wrote no hypotheses: their prediction is the prices' of then."
        )
    states = [_state(row) for row in part.rows]
    told = sorted({state for state in states if state})
    if len(told) == 1:
        lines.append(f"State of the device in every race: {told[0]}.")
    head = ("", "matmul", "control", "arm", "predicted", "measured", "floor", "answer", "decision", "state", "entry")
    rows = [_row(row, state if len(told) > 1 else "") for row, state in zip(part.rows, states, strict=True)]
    return [*lines, "", *table(head, rows), "", *_reasons(part.rows)]


def _row(row: Row, state: str) -> tuple[str, ...]:
    said = row.predicted
    predicted = "open" if said.ratio is None else f"{said.ratio:.2f}x"
    predicted += f" by {said.by}" if said.by != "price" and said.ratio is not None else ""
    measured = "not raced"
    if row.races:
        first, again = row.races[0].race, [r.race for r in row.races[1:] if r.stage == "confirm"]
        measured = ratio(first.ratio, first.low, first.high)
        measured += "".join(f"; fresh {ratio(race.ratio, race.low, race.high)}" for race in again)
    names = f"{row.names[1]} against {row.names[0]}: " if len(row.names) == 2 else ""
    return (
        f"H{row.number}{'' if row.written else '*'}",
        names + words_of(row.problem),
        f"`{short_tile(row.control)}`",
        f"`{short_tile(row.arm)}`",
        predicted,
        measured,
        f"{1 + row.floor:.3f}" if row.races and row.floor < UNBOUNDED - 1 else "",
        row.answer,
        row.decision.outcome + (f", superseded by H{row.superseded}" if row.superseded else ""),
        state,
        ref(row.ref),
    )


def _reasons(rows: Sequence[Row]) -> list[str]:
    """Why each was believed, and where no race decided, why it was out; equal words once."""
    by_words: dict[str, list[int]] = {}
    for row in rows:
        words = row.because or "no reason was written"
        words += f" (not raced: {row.decision.reason})" if not row.races else ""
        source = {"person": "asked with", "study": "the study"}.get(row.basis, "price")
        by_words.setdefault(f"{source}: {words}", []).append(row.number)
    lines = ["Why they were believed, and what settled those that did not race:", ""]
    for words, numbers in by_words.items():
        lines.append(f"- {', '.join(f'H{number}' for number in numbers)}: {cell(words)}")
    return lines


def _state(row: Row) -> str:
    """Clocks, heat and throttling over a row's races; "" where it had none."""
    states = [race.state for race in row.races]
    known = [state for state in states if state.source != "unknown"]
    if not known:
        return f"unknown ({states[0].why})" if states else ""
    clocks = [state.clock_mhz for state in known if state.clock_mhz is not None]
    heat = [state.temperature_c for state in known if state.temperature_c is not None]
    told = [state.throttle for state in known if state.throttle is not None]
    words = [f"{min(c[0] for c in clocks):.0f} to {max(c[2] for c in clocks):.0f} MHz"] if clocks else []
    words += [f"{max(t[2] for t in heat):.0f} C"] if heat else []
    reasons = dict.fromkeys(reason for each in told for reason in each)
    words += [f"held back: {', '.join(reasons)}" if reasons else "nothing held it back"] if told else []
    return ", ".join(words) or "unknown"


def timed(part: Part) -> list[str]:
    """Each matmul's fastest tiles under the newest driver and compiler, raced or screened, and their place by price."""
    rows = []
    for record in records_of(part.history)[:1]:
        for matmul in sorted(record.matmuls, key=lambda each: (each.problem.m, each.problem)):
            found = [(tried.tile, tried.seconds, tried.price) for tried in matmul.tried if tried.seconds]
            prices = sorted(price.seconds for _, _, price in found if price is not None)
            cells = [
                f"`{short_tile(tile)}` {seconds / (found[0][1] or seconds):.2f}"
                + (f" ({prices.index(price.seconds) + 1})" if price is not None else "")
                for tile, seconds, price in found[:SHOWN]
                if seconds is not None
            ]
            more = f" and {len(found) - SHOWN} slower" if len(found) > SHOWN else ""
            rows.append((words_of(matmul.problem), ", ".join(cells) + more))
    if not rows:
        return []
    lines = [
        "Fastest first: time over the fastest's, and in brackets the tile's place among the timed ones by its price of",
        "then. Times of several screenings are joined through the tiles they share; those of no race are no evidence.",
    ]
    return [*lines, "", *table(("matmul", "tiles"), rows)]


def refused(part: Part) -> list[str]:
    """Candidates that failed to compile, run or end in time, and those that the proof found wrong."""
    rows: Counter[tuple[str, ...]] = Counter()
    for each in part.refused:
        rows[words_of(each.problem), f"`{short_tile(each.tile)}`", each.outcome, each.reason] += 1
    for wrong in part.wrong:
        reason = f"{wrong.verdict.failed}: {wrong.verdict.detail}"
        rows[words_of(wrong.problem), f"`{short_tile(wrong.tile)}`", "wrong", reason] += 1
    if rows:
        listed = [(*key, f"{number}") for key, number in rows.items()]
        return table(("matmul", "tile", "outcome", "why", "times"), listed)
    proofs = len(part.history.verdicts)
    return [f"None: {proofs} proofs, all right; no candidate failed to compile, run or end in time."] if proofs else []


def prediction(part: Part) -> list[str]:
    """How far prices are off, how evenly, and where most."""
    if not part.prices:
        return []
    lines = [
        "Measured seconds over paper seconds, by kernel: how far a price is off, and how evenly. A price is to order",
        "tiles; the way from the lower to the upper quartile is what it does not know.",
        "",
        *table(
            ("kernel", "timings", "lower quartile", "median", "upper quartile"),
            [
                (f"`{p.kernel}`", f"{p.timings}", f"{p.low:.2f}", f"{p.median:.2f}", f"{p.high:.2f}")
                for p in part.prices
            ],
        ),
        "",
    ]
    foreseen = Counter(row.foreseen for row in part.rows if row.foreseen)
    if foreseen:
        lines.append(f"- direction of what raced clearly: right {foreseen['yes']} times of {foreseen.total()}")
    if part.spearman:
        ranks = sorted(part.spearman)
        lines.append(
            f"- rank correlation of price and time within a screening: median {ranks[len(ranks) // 2]:.2f}, lowest"
            f" {ranks[0]:.2f}, over {len(ranks)} screenings"
        )
    if part.top5[1]:
        hits, of = part.top5
        lines.append(f"- the fastest of a screening was among the price's first five {hits} times of {of}")
    return [*lines, *_surprises(part.rows)]


def _surprises(rows: Sequence[Row]) -> list[str]:
    """The rows whose outcome is farthest from what was predicted."""
    off = []
    for row in rows:
        said, found = row.predicted.ratio, row.ratio
        if said is not None and found is not None and said > 0 and not row.superseded:
            off.append((abs(math.log(found / said)), row, said, found))
    off.sort(key=lambda each: -each[0])
    shown = [each for each in off[:SURPRISES] if each[0] >= math.log(LEAST_SURPRISE)]
    if not shown:
        return []
    words = "; ".join(f"H{row.number} {said:.2f}x, measured {found:.2f}x" for _, row, said, found in shown)
    return [f"- farthest off: {words}"]
