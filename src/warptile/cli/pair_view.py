"""`warptile study --arms A B --problem P`: one hypothesis, priced, raced and answered."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from warptile import kernels, workloads
from warptile.cli import options, show
from warptile.cli.check import limits_of
from warptile.contracts import Limits, Price, Problem, UnusableInput
from warptile.journal import Asked as Who
from warptile.journal import Journal
from warptile.journal.reasons import predicted
from warptile.journal.record import Record
from warptile.places import Places
from warptile.race.statistics import UNBOUNDED
from warptile.studies.pair import Pair, PairResult, Recorded, measure_pair
from warptile.tuning.notes import Book
from warptile.tuning.worker_stand import WorkerStand
from warptile.workloads.texts import problem_of, words_of

SECONDS = 60.0


@dataclass(frozen=True)
class Asked:
    """The options of a two-armed study, as they were given."""

    arms: tuple[str, str]
    problem: str
    expect: float | None
    recorded: str
    rounds: int
    model: Path | None
    who: Who


def open_book(stand: WorkerStand, kept: Places, who: Who) -> Book:
    """The journal's book for a device; earlier entries are read for what new ones supersede."""
    limits, identity = stand.describe()
    journal = Journal(kept.state / "journal")
    record = Record(journal, identity, limits, who, journal.read().entries, uuid=stand.uuid())
    return Book(record, {kernel.name: kernel for kernel in kernels.for_runtime(limits.runtime)})


def study(asked: Asked, device: str | None, paper: bool, seconds: float, kept: Places, seed: int, json: bool) -> None:
    """Run it and print. Exit 1 where a recorded interval is not met again."""
    control, arm = (kernels.parse_tile(text)[1].text() for text in asked.arms)
    if not asked.problem:
        raise UnusableInput("--arms needs --problem, such as --problem 'Q4_K n=4096 k=4096 m=128'")
    if asked.expect is not None and not 0 < asked.expect < float("inf"):
        raise UnusableInput(f"--expect {asked.expect} is no ratio of two times")
    recorded = _recorded(asked.recorded)
    if paper:
        limits = limits_of(device or options.FIRST_DEVICE, kept, kernels.parse_tile(control)[0].runtime)
        pair = Pair(control, arm, problem_of(asked.problem, limits.activations), asked.expect, asked.rounds)
        _paper(pair, limits, json)
        return
    chosen = device or options.FIRST_DEVICE
    if ":" not in chosen:
        raise UnusableInput(f"device {chosen} is a data file: nothing can be measured on it; give --paper")
    workload = workloads.load(str(asked.model)) if asked.model is not None else None
    errors = show.err()
    with contextlib.closing(WorkerStand(chosen, kept.ready(), workload)) as stand:
        book = open_book(stand, kept, asked.who)
        limits = book.record.limits
        pair = Pair(control, arm, problem_of(asked.problem, limits.activations), asked.expect, asked.rounds)
        source = str(asked.model) if asked.model is not None else ""
        book.record.start(source=source, seed=seed, budget=seconds, rounds=asked.rounds)

        def say(line: str) -> None:
            errors.print(Text(line, style="dim"), soft_wrap=True)

        result = measure_pair(pair, stand, book, seconds, seed, say)
        book.record.end(tried=book.tried, rejected=book.rejected)
        agreement = recorded.agreement(result.races) if recorded is not None and result.races else ""
    if json:
        where = str(book.record.journal.path)
        show.print_json({"result": result, "recorded": recorded, "agreement": agreement, "journal": where})
    else:
        print_pair(show.out(), result, recorded, agreement)
    if recorded is not None and agreement in ("", "does not overlap"):
        raise typer.Exit(1)


def _recorded(text: str) -> Recorded | None:
    if not text:
        return None
    try:
        values = [float(part) for part in text.split(",")]
        found = Recorded(*values)
    except (ValueError, TypeError):
        raise UnusableInput(f"--recorded {text!r} is not LOW,HIGH or LOW,HIGH,FLOOR") from None
    if not (0 < found.low <= found.high < float("inf") and 0 <= found.floor < float("inf")):
        raise UnusableInput(f"--recorded {text!r} is no interval of a ratio")
    return found


def _paper(pair: Pair, limits: Limits, json: bool) -> None:
    prices = [_price(tile, pair.problem, limits) for tile in (pair.control, pair.arm)]
    told = predicted(prices[0], prices[1])
    if json:
        show.print_json({"pair": pair, "device": limits.name, "predicted": told, "prices": prices})
        return
    console = show.out()
    console.print(show.line(f"{words_of(pair.problem)} on {limits.name}: prices, not measurements", "bold"))
    for name, tile in (("control", pair.control), ("arm", pair.arm)):
        console.print(show.line(f"{name:<8} {show.tile(tile)}"))
    _print_prediction(console, pair, told.ratio, told.reasons)


def _price(tile: str, problem: Problem, limits: Limits) -> Price:
    kernel, parsed = kernels.parse_tile(tile)
    if kernel not in kernels.for_runtime(limits.runtime):
        raise UnusableInput(f"kernel {kernel.name} does not run on {limits.name}")
    for rule in kernel.broken_rules(parsed, problem, limits):
        raise UnusableInput(f"{tile} is not valid for {problem.text()} on {limits.name}: {rule.text()}")
    return kernel.price(parsed, problem, limits)


def _print_prediction(console: Console, pair: Pair, ratio: float | None, reasons: tuple[str, ...]) -> None:
    own = "" if pair.expect is None else f", {pair.expect:.3f}x by whoever asked"
    console.print(show.line(f"expected {'no price' if ratio is None else f'{ratio:.3f}x by the price'}{own}"))
    if reasons:
        console.print(show.line(f"         {'; '.join(reasons)}", "dim"), soft_wrap=True)


def print_pair(console: Console, result: PairResult, recorded: Recorded | None, agreement: str) -> None:
    """The hypothesis, what was measured, and the decision."""
    pair, told = result.pair, result.predicted
    console.print(show.line(words_of(pair.problem), "bold"), soft_wrap=True)
    for name, tile, seconds in (
        ("control", pair.control, result.races[0].incumbent_seconds if result.races else None),
        ("arm", pair.arm, result.races[0].challenger_seconds if result.races else None),
    ):
        console.print(show.line(f"{name:<9}{show.duration(seconds):>8}  {show.tile(tile)}"), soft_wrap=True)
    console.print(show.line(f"because  {result.because}", "dim"), soft_wrap=True)
    by = {"person": "by whoever asked", "price": "by the price"}.get(told.by, told.by)
    console.print(show.line(f"expected {'open' if told.ratio is None else f'{told.ratio:.3f}x {by}'}"))
    for race in result.races:
        if race.high >= UNBOUNDED:
            console.print(show.line(f"measured {race.ratio:.3f}x in {race.rounds} rounds: too few for an interval"))
            continue
        found = f"{race.ratio:.3f}x [{race.low:.3f}, {race.high:.3f}] in {race.rounds} rounds"
        console.print(show.line(f"measured {found}, A/A floor {1 + race.floor:.3f}"))
    style = {"accept": "bold green", "reject": "bold red"}.get(result.decision.outcome, "bold yellow")
    console.print(show.line(f"{result.decision.outcome}: {result.decision.reason}", style), soft_wrap=True)
    if recorded is not None:
        said = f"the new interval {agreement}" if agreement else "it was not measured again"
        console.print(show.line(f"recorded [{recorded.low:.3f}, {recorded.high:.3f}]: {said}"), soft_wrap=True)
    console.print(show.line(f"journal  {result.ref}", "dim"), soft_wrap=True)
