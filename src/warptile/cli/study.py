"""`warptile study`: a hypothesis on paper, or measured on a live device."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from warptile import studies, words
from warptile.cli import options, pair_view, show
from warptile.cli.check import limits_of
from warptile.cli.tune_view import grid
from warptile.contracts import UnusableInput
from warptile.gguf.escape import printable
from warptile.studies import Measured, Paper, Study
from warptile.studies.measured import MeasuredRow
from warptile.studies.pair import ROUNDS
from warptile.studies.paper import PaperRow
from warptile.tuning.worker_stand import WorkerStand


def text(value: str, style: str = "") -> Text:
    """A study's words whole, on one line, unprintable characters escaped."""
    return Text(one_line(value), style=style)


def one_line(value: str) -> str:
    """Line breaks as spaces, what cannot be printed escaped."""
    return printable(" ".join(value.split()))


def study(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[STUDY]", help="A shipped study's name, or a .toml file.")
    ] = None,
    arms: Annotated[
        tuple[str, str] | None,
        typer.Option("--arms", metavar="A B", help="Two tiles in place of a study: the control, and what it is raced"
                     " against."),
    ] = None,
    problem: Annotated[
        str, typer.Option("--problem", help="With --arms: the matmul, such as 'Q4_K n=4096 k=4096 m=128 dtype=fp16'.")
    ] = "",
    because: options.Because = "",
    expect: Annotated[
        float | None, typer.Option("--expect", help="With --arms: A's time over B's as you predict it.")
    ] = None,
    recorded: Annotated[
        str,
        typer.Option("--recorded", metavar="LOW,HIGH[,FLOOR]", help="With --arms: an interval measured before; exit 1"
                     " where the new one does not overlap it."),
    ] = "",
    rounds: Annotated[int, typer.Option("--rounds", min=8, help="With --arms: rounds of a race.")] = ROUNDS,
    model: Annotated[
        Path | None, typer.Option("--model", help="With --arms: a .gguf, to prove on and race with its weights.")
    ] = None,
    paper: Annotated[bool, typer.Option("--paper", help="Predictions and budgets only; nothing is run.")] = False,
    device: Annotated[
        str | None,
        typer.Option("--device", help="A live device; with --paper also a card's data file. Default: vulkan:0, and with"
                     " --paper the study's own card."),
    ] = None,
    budget: Annotated[str | None, typer.Option("--budget", help="Time to spend; default: the study's.")] = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
    locks: options.Locks = None,
) -> None:  # fmt: skip
    """Price a study's arms, and race them where a device is here.

    With --arms and --problem: one hypothesis about two tiles, raced in pairs; the journal keeps it and its answer.
    """
    kept = options.places(state, cache, locks)
    asked = options.asked(context, "study", because)
    if arms is not None:
        run = pair_view.Asked(arms, problem, expect, recorded, rounds, model, asked)
        time = options.seconds(budget) if budget else pair_view.SECONDS
        pair_view.study(run, device, paper, time, kept, seed, json)
        return
    if name is None or problem or expect is not None or recorded or model is not None:
        raise UnusableInput("study needs a STUDY's name, or two tiles and a matmul with --arms A B --problem P")
    found = studies.load(name)
    if paper:
        table = studies.paper(found, limits_of(device or found.device, kept))
        if json:
            show.print_json(table)
        else:
            _heading(show.out(), found, table.device, table.size)
            print_paper(show.out(), table)
        return
    chosen = device or options.FIRST_DEVICE
    if ":" not in chosen:
        raise UnusableInput(f"device {chosen} is a data file: nothing can be measured on it; give --paper")
    seconds = options.seconds(budget) if budget else found.seconds
    errors = show.err()
    with contextlib.closing(WorkerStand(chosen, kept.ready())) as stand:
        book = pair_view.open_book(stand, kept, asked)
        book.record.start(source=name, seed=seed, budget=seconds, question=found.question, hypothesis=found.hypothesis)
        result = studies.measure(
            found, stand, seconds, seed, lambda line: errors.print(Text(line, style="dim"), soft_wrap=True), book
        )
        book.record.end(tried=book.tried, rejected=book.rejected)
    if json:
        show.print_json(result)
    else:
        console = show.out()
        _heading(console, found, f"{result.identity.device}, {result.identity.driver}", result.size)
        print_paper(console, result.paper)
        print_measured(console, result, found.control)


def _heading(console: Console, found: Study, device: str, size: str) -> None:
    console.print(text(f"{found.name} on {device}, at {size}", "bold"), soft_wrap=True)
    console.print(text(found.question), soft_wrap=True)
    console.print(text(found.hypothesis, "dim"), soft_wrap=True)


def print_paper(console: Console, table: Paper) -> None:
    """What each arm costs on each problem, what is refused and why, then the order predicted."""
    console.print(Text("\non paper: prices, not measurements", style="bold"))
    for problem in dict.fromkeys(row.problem for row in table.rows):
        rows = [row for row in table.rows if row.problem == problem]
        console.print(text(f"{problem}: {rows[0].matmul.text()}", "dim"))
        console.print(_paper_rows(rows))
    console.print()
    _refused(console, table)
    _print_arms(console, table)
    how = "" if table.spearman is None else f", Spearman {table.spearman:.2f} to the order expected"
    if table.predicted:
        console.print(text(f"predicted: {' > '.join(table.predicted)}{how}"), soft_wrap=True)
    if table.expected:
        console.print(text(f"expected:  {' > '.join(table.expected)}", "dim"), soft_wrap=True)


def _paper_rows(rows: list[PaperRow]) -> Table:
    table = grid()
    table.add_column("arm", no_wrap=True)
    for name in ("shared B", "by shared", "resident", "limited by", "sums", "barriers", "FLOP/B", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    beside = any(row.beside for row in rows)
    if beside:
        table.add_column("beside", overflow="fold")
    for row in rows:
        price = row.price
        if price is None:
            shared = str(row.shared_bytes) if row.shared_bytes else "-"
            table.add_row(text(row.arm), shared, *["-"] * 6, Text("refused"), text(row.broken[0].text()))
            continue
        cells = [
            str(price.shared_bytes),
            str(row.threads_by_shared or "-"),
            str(price.resident_threads),
            price.limited_by.replace(" memory", ""),
            f"{price.accumulators}{' spill' if price.spills else ''}",
            str(row.barriers),
            f"{price.intensity:.0f}",
            "-" if row.ratio is None else f"{row.ratio:.3f}x",
        ]
        if beside:
            shown = (
                f"{b.tile.split(':')[0].split('.')[-1]} {b.shared_bytes} B, {b.resident_threads}" for b in row.beside
            )
            cells.append("; ".join(shown))
        table.add_row(text(row.arm), *cells)
    return table


def _print_arms(console: Console, table: Paper) -> None:
    """An arm a line, in the order predicted: its ratio to what it is held against, what the source found, and why."""
    width = max(len(arm.arm) for arm in table.arms)
    for arm in sorted(table.arms, key=lambda each: (each.place is None, each.place or 0)):
        line = Text(f"{arm.place or '-':>3} ").append(one_line(arm.arm).ljust(width), style="bold")
        said = []
        if arm.against == arm.arm:
            said.append("control")
        elif arm.against_ratio is not None:
            said.append(f"{arm.predicted}, {arm.against_ratio:.3f}x against {arm.against}")
        elif arm.predicted == "refused":
            said.append("refused")
        if arm.agrees is False:
            said.append(f"expected was {arm.expect}")
        if arm.source:
            said.append(f"the source: {arm.source}")
        line.append("  " + one_line("; ".join(said)), style="yellow" if arm.agrees is False else "")
        console.print(line, soft_wrap=True)
        if arm.reasons:
            console.print(Text("    " + one_line("; ".join(arm.reasons)), style="dim"), soft_wrap=True)


def _refused(console: Console, table: Paper) -> None:
    """The sizes before the one taken: each rule that refused arms, with the arms it refused."""
    refusals: dict[tuple[str, str], dict[str, str]] = {}
    for row in table.refused:
        refusals.setdefault((row.size, row.broken[0].rule), {}).setdefault(row.arm, row.broken[0].numbers)
    for (size, rule), arms in refusals.items():
        listed = ", ".join(f"{arm} ({numbers})" for arm, numbers in arms.items())
        console.print(text(f"at {size}, refused by {rule}: {listed}", "yellow"), soft_wrap=True)


def print_measured(console: Console, result: Measured, control: str) -> None:
    """Every race, then the arms over all problems in the order measured."""
    console.print(Text("\nmeasured: paired races against " + control, style="bold"))
    table = grid()
    table.add_column("problem", no_wrap=True)
    table.add_column("arm", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("ratio, interval", no_wrap=True)
    table.add_column("noise", justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    of_control = {row.problem: row.race.incumbent_seconds for row in result.rows if row.race is not None}
    for row in result.rows:
        table.add_row(*_measured_cells(row, of_control.get(row.problem)))
    console.print(table)
    for arm in result.arms:
        problems = f"{arm.problems} problem" + ("s" if arm.problems > 1 else "")
        line = f"{arm.place:3} {arm.arm}: {show.ratio(arm.ratio, arm.low, arm.high)} over {problems}"
        console.print(text(line), soft_wrap=True)
    how = "" if result.spearman is None else f", Spearman {result.spearman:.2f} of price and time over the arms"
    console.print(text(f"measured:  {' > '.join(result.order)}{how}"), soft_wrap=True)
    console.print(text(f"predicted: {' > '.join(result.paper.predicted)}", "dim"), soft_wrap=True)


def _measured_cells(row: MeasuredRow, of_control: float | None) -> list[Text]:
    race = row.race
    if race is None:
        same = row.outcome in ("control", "same tile")
        seconds = show.duration(of_control) if same else "-"
        said = text(f"{row.outcome} {row.detail}")
        return [text(row.problem), text(row.arm), Text(seconds), Text("-"), Text(""), said]
    return [
        text(row.problem),
        text(row.arm),
        Text(show.duration(race.challenger_seconds)),
        Text(show.ratio(race.ratio, race.low, race.high)),
        Text(words.floor(race.floor)),
        text("" if row.outcome == "raced" else row.outcome),
    ]
