"""A study on paper: what each arm costs, which are refused, the order predicted and why. Nothing is measured."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy.stats import spearmanr

from warptile import kernels
from warptile.contracts import BrokenRule, Limits, Price, Problem
from warptile.studies.sizing import Fit, choose_size, fits
from warptile.studies.study import Study

SAME = 1e-4
"""Ratios nearer to 1 than this are called equal."""


@dataclass(frozen=True)
class Beside:
    """Another tile priced beside an arm: its shared bytes and resident threads."""

    tile: str
    shared_bytes: int
    resident_threads: int


@dataclass(frozen=True)
class PaperRow:
    """An arm on a problem. price: None where it is refused (`broken` says why).

    barriers: of a whole launch, a workgroup. ratio: the control's paper seconds over this one's. size: its size's name.
    shared_bytes: a workgroup's, by the kernel's own price; of a refused arm too where it only exceeds the device.
    threads_by_shared: resident threads if shared memory and the thread limit alone decided, 0 where the device does not
    state its pool.
    """

    arm: str
    problem: str
    matmul: Problem
    size: str
    tile: str
    broken: tuple[BrokenRule, ...]
    price: Price | None
    barriers: int
    ratio: float | None
    shared_bytes: int
    beside: tuple[Beside, ...]
    threads_by_shared: int = 0


@dataclass(frozen=True)
class PaperArm:
    """What is predicted of an arm over all problems.

    place: 1 is the fastest, None where it has no price. ratio, against_ratio: geometric means over the problems of the
    control's, and of `against`'s, seconds over its own. predicted: "gain", "loss", "equal", "refused" or "open" (no
    price); agrees: whether that is what the study expects, None where one of the two is open. reasons: in words.
    """

    arm: str
    place: int | None
    ratio: float | None
    against: str
    against_ratio: float | None
    predicted: str
    expect: str
    agrees: bool | None
    reasons: tuple[str, ...]
    source: str
    why: str


@dataclass(frozen=True)
class Paper:
    """A paper table. rows: at the size the device takes; refused: arms refused at the sizes before that one.

    predicted: arm names, fastest first, ties in the study's expected order. spearman: of predicted and expected
    order, None with fewer than three arms in both.
    """

    study: str
    device: str
    size: str
    rows: tuple[PaperRow, ...]
    refused: tuple[PaperRow, ...]
    arms: tuple[PaperArm, ...]
    predicted: tuple[str, ...]
    expected: tuple[str, ...]
    spearman: float | None


def paper(study: Study, limits: Limits) -> Paper:
    """Price every arm on a device's limits. Raises UnusableInput where no size fits."""
    size = choose_size(study, limits)
    rows = [_row(study, each, limits) for each in fits(study, size, limits)]
    seconds = {(r.arm, r.problem): r.price.seconds for r in rows if r.price is not None}
    rows = [_with_ratio(row, seconds.get((study.control, row.problem))) for row in rows]
    earlier = [_row(study, each, limits) for before in range(size) for each in fits(study, before, limits)]
    predicted = _order(study, seconds)
    arms = tuple(_arm(study, arm.name, rows, seconds, predicted) for arm in study.arms)
    return Paper(
        study.name,
        limits.name,
        study.sizes[size],
        tuple(rows),
        tuple(row for row in earlier if row.broken),
        arms,
        predicted,
        study.expected,
        _spearman(predicted, study.expected),
    )


def _row(study: Study, each: Fit, limits: Limits) -> PaperRow:
    problem = each.problem.on(limits)
    price, barriers, beside, by_shared, shared_bytes = None, 0, [], 0, 0
    kernel, tile = each.parsed
    if all(rule.well_formed for rule in each.broken):
        shared_bytes = kernel.price(tile, problem, limits).shared_bytes
    if not each.broken:
        price = kernel.price(tile, problem, limits)
        barriers = price.barriers * math.ceil(problem.k / kernel.boundaries(tile)[2])
        by_shared = _threads_by_shared(price.shared_bytes, kernel.source(tile, problem, limits).workgroup, limits)
    for text in study.arm(each.arm).also if each.problem == study.problems[0] else ():
        kernel, tile = kernels.parse_tile(text)
        if not kernel.broken_rules(tile, problem, limits):
            found = kernel.price(tile, problem, limits)
            beside.append(Beside(tile.text(), found.shared_bytes, found.resident_threads))
    return PaperRow(
        each.arm,
        each.problem.name,
        problem,
        study.sizes[each.size],
        each.tile,
        each.broken,
        price,
        barriers,
        None,
        shared_bytes,
        tuple(beside),
        by_shared,
    )


def _threads_by_shared(shared_bytes: int, workgroup: int, limits: Limits) -> int:
    if not limits.shared_bytes_per_unit or not shared_bytes:
        return 0
    by_threads = limits.threads_per_unit // workgroup if limits.threads_per_unit else limits.shared_bytes_per_unit
    return min(limits.shared_bytes_per_unit // shared_bytes, by_threads) * workgroup


def _with_ratio(row: PaperRow, control: float | None) -> PaperRow:
    if row.price is None or control is None:
        return row
    return dataclasses.replace(row, ratio=control / row.price.seconds)


def mean_ratio(arm: str, other: str, seconds: Mapping[tuple[str, str], float]) -> float | None:
    """Geometric mean over the problems both run of other's seconds over arm's; None where there is none."""
    shared = [p for a, p in seconds if a == arm and (other, p) in seconds]
    if not shared:
        return None
    return math.exp(sum(math.log(seconds[other, p] / seconds[arm, p]) for p in shared) / len(shared))


def verdict(ratio: float | None) -> str:
    """ "gain", "loss" or "equal" of a ratio; "open" of none."""
    if ratio is None:
        return "open"
    if abs(ratio - 1) < SAME:
        return "equal"
    return "gain" if ratio > 1 else "loss"


def _order(study: Study, seconds: Mapping[tuple[str, str], float]) -> tuple[str, ...]:
    ratios = {arm.name: mean_ratio(arm.name, study.control, seconds) for arm in study.arms}
    place = {name: i for i, name in enumerate(study.expected)}
    priced = [(name, ratio) for name, ratio in ratios.items() if ratio is not None]
    ordered = sorted(priced, key=lambda pair: (-round(pair[1], 9), place.get(pair[0], len(place))))
    return tuple(name for name, _ in ordered)


def _arm(
    study: Study,
    name: str,
    rows: Sequence[PaperRow],
    seconds: Mapping[tuple[str, str], float],
    predicted: tuple[str, ...],
) -> PaperArm:
    arm = study.arm(name)
    mine = [row for row in rows if row.arm == name]
    against = arm.against or study.control
    ratio = mean_ratio(name, against, seconds)
    said = "refused" if any(row.broken for row in mine) else verdict(ratio) if name != study.control else "open"
    reasons = tuple(dict.fromkeys(b.text() for row in mine for b in row.broken))
    if not reasons and name != against:
        reasons = _reasons(mine, [row for row in rows if row.arm == against])
    expect = arm.expect if name != study.control else "open"
    return PaperArm(
        name,
        predicted.index(name) + 1 if name in predicted else None,
        mean_ratio(name, study.control, seconds),
        against,
        ratio,
        said,
        expect,
        None if "open" in (said, expect) else said == expect,
        reasons,
        arm.source,
        arm.why,
    )


def _reasons(mine: Sequence[PaperRow], theirs: Sequence[PaperRow]) -> tuple[str, ...]:
    """What differs between two arms, by the first problem on which their tiles differ."""
    others = {row.problem: row for row in theirs}
    for row in mine:
        other = others.get(row.problem)
        if other is not None and row.price is not None and other.price is not None and row.tile != other.tile:
            return tuple(differences(row, other))
    return ("the same tile on every problem",) if all(row.price is not None for row in mine) else ()


def differences(row: PaperRow, other: PaperRow) -> list[str]:
    """In words, each with both numbers."""
    a, b = row.price, other.price
    assert a is not None
    assert b is not None
    found = []
    if a.spills != b.spills:
        found.append(
            f"{a.accumulators} accumulators a thread spill, {b.accumulators} do not"
            if a.spills
            else f"{a.accumulators} accumulators a thread do not spill, {b.accumulators} do"
        )
    elif a.accumulators != b.accumulators:
        found.append(f"{a.accumulators} accumulators a thread against {b.accumulators}")
    threads = f"{a.resident_threads} resident threads (limited by {a.limited_by})"
    if a.resident_threads != b.resident_threads:
        found.append(f"{threads} against {b.resident_threads} ({b.limited_by})")
    elif a.shared_bytes != b.shared_bytes:
        found.append(f"still {threads}, though {a.shared_bytes} B of shared memory against {b.shared_bytes}")
    if row.barriers != other.barriers:
        found.append(f"{row.barriers} barriers a workgroup against {other.barriers}")
    if abs(a.intensity / b.intensity - 1) > 0.01:
        found.append(f"{a.intensity:.1f} FLOP a byte against {b.intensity:.1f}")
    if abs(a.fill - b.fill) > 0.05:
        found.append(f"the last wave {a.fill:.0%} full against {b.fill:.0%} ({a.workgroups} workgroups)")
    return found or [f"other work a thread: {_changed_fields(row.tile, other.tile)}"]


def _changed_fields(tile: str, other: str) -> str:
    mine, theirs = (kernels.parse_tile(text)[1].fields() for text in (tile, other))
    return ", ".join(
        f"{name} {value} against {theirs.get(name)}" for name, value in mine.items() if value != theirs.get(name)
    )


def _spearman(predicted: Sequence[str], expected: Sequence[str]) -> float | None:
    both = [name for name in expected if name in predicted]
    if len(both) < 3:
        return None
    return float(spearmanr(range(len(both)), [predicted.index(name) for name in both]).statistic)
