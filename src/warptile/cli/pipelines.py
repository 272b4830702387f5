"""`warptile pipelines`: a kernel's small, medium and large tiles and their thresholds, tuned one at a time."""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer
from rich.text import Text

from warptile import kernels, workloads
from warptile.cli import options, show
from warptile.cli.tune_view import grid
from warptile.contracts import Problem, UnusableInput, Workload
from warptile.journal import Journal
from warptile.journal.record import Record
from warptile.tables import SIZES, Table, Thresholds
from warptile.tuning.budget import Budget
from warptile.tuning.pipelines import PipelinesResult, PipelineTuner
from warptile.tuning.worker_stand import WorkerStand

SHARE_OF_RACES = 0.5


def pipelines(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="MODEL", help="A .gguf model, a shape file, or a shipped one's name.")
    ],
    kernel: Annotated[str, typer.Option("--kernel", help="Whose pipelines, such as mul_mm or mul_mmq.")] = "mul_mm",
    size: Annotated[str, typer.Option("--size", help="Which of small,medium,large; the others are controls.")] = "all",
    device: options.Device = options.FIRST_DEVICE,
    budget: options.Budget = "3m",
    seed: options.Seed = 0,
    because: options.Because = "",
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
    locks: options.Locks = None,
) -> None:
    """Tune a kernel's tile of each size of matmul, each raced alone, and the (m, n) thresholds between them.

    The budget bounds the whole run, proofs included; sizes and thresholds not decided when it ends stay as they were.
    """
    chosen, seconds, own = chosen_sizes(size), options.seconds(budget), kernels.by_name(kernel)
    clock = Budget(seconds)
    kept = options.places(state, cache, locks).ready()
    workload = workloads.load(source)
    errors = show.err()
    with contextlib.closing(WorkerStand(device, kept, workload)) as stand:
        limits, identity = stand.describe()
        if own not in kernels.for_runtime(limits.runtime):
            raise UnusableInput(f"kernel {own.name} does not run on {limits.name}")
        problems = heaviest(workload, limits.activations)
        table, journal = Table.load(kept.state / "tables", identity), Journal(kept.state / "journal")
        record = Record(journal, identity, limits, options.asked(context, "pipelines", because))
        record.start(source=workload.source, kernel=own.name, seed=seed, budget=seconds)
        each = SHARE_OF_RACES * seconds / len(problems) / len(chosen)
        results = []
        for done, problem in enumerate(problems):
            tuner = PipelineTuner(
                stand, own, problem, table, journal, each, seed,
                lambda line: errors.print(Text(line, style="dim"), soft_wrap=True),
                clock=Budget(clock.left() / (len(problems) - done)),
            )  # fmt: skip
            results.append(tuner.tune(chosen, place_thresholds=chosen == SIZES))
            table.save()
        record.end()
    if json:
        show.print_json({"path": str(table.path), "results": results})
        return
    for result in results:
        print_result(result)
    show.out().print(Text(f"table    {show.path(table.path)}", style="dim"), soft_wrap=True)


def chosen_sizes(text: str) -> tuple[str, ...]:
    """Sizes of "small,large" or "all", in order. Raises UnusableInput."""
    if text == "all":
        return SIZES
    asked = {part.strip() for part in text.split(",")}
    if not asked or asked - set(SIZES):
        raise UnusableInput(f"--size {text!r} is not of {', '.join(SIZES)}, or all")
    return tuple(size for size in SIZES if size in asked)


def heaviest(workload: Workload, dtype: str) -> list[Problem]:
    """The matmul of most weights of each format, experts and the output left out. Raises UnusableInput without one."""
    best: dict[str, Problem] = {}
    for row in workload.rows:
        if row.role == "experts" or row.experts > 1 or row.role == "output":
            continue
        held = best.get(row.format)
        if held is None or row.n * row.k > held.n * held.k:
            best[row.format] = Problem(row.format, row.n, row.k, 1, dtype, dtype)
    if not best:
        raise UnusableInput(f"{workload.name} has no matmul to tune pipelines on")
    return list(best.values())


def print_result(result: PipelinesResult) -> None:
    """A line a size, its controls, the thresholds."""
    console, key, t = show.out(), result.pipelines.key, result.pipelines.thresholds
    console.print(Text(f"{key.kernel} on {key.format}", style="bold"))
    listed = grid()
    for name in ("size", "raced at", "tile before\ntile now", "ratio", "controls"):
        listed.add_column(name)
    for row in result.rows:
        race = f"{row.race.ratio:.2f}x\n{show.interval(row.race.low, row.race.high)}" if row.race else "-"
        controls = "\n".join(f"{c.size} {c.ratio:.2f}x {show.interval(c.low, c.high)}" for c in row.controls)
        tiles = f"{show.tile(row.before)}\n{show.tile(row.after) if row.after != row.before else 'stays'}"
        where = f"n={row.problem.n} k={row.problem.k}\nM = {row.problem.m}"
        listed.add_row(row.size, where, tiles, race, controls)
    console.print(listed)
    console.print(Text(f"{limits_of_sizes(t)}\n"))


def limits_of_sizes(t: Thresholds) -> str:
    """The thresholds in words."""
    return f"small up to m = {t.small_m} or n = {t.small_n}, medium up to m = {t.medium_m} or n = {t.medium_n}"
