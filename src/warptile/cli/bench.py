"""`warptile bench ops`: paired measurements over a shape file."""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer
from rich.text import Text

from warptile import kernels, workloads
from warptile.bench import OpsReport, bench_ops
from warptile.cli import bench_model as whole
from warptile.cli import options, show
from warptile.cli.tune_view import grid
from warptile.journal import Journal
from warptile.race.statistics import UNBOUNDED
from warptile.roofline import arithmetic
from warptile.tables import Table
from warptile.tuning.budget import Budget
from warptile.tuning.worker_stand import WorkerStand

app = typer.Typer(help="Measure.", no_args_is_help=False)
app.command("model")(whole.model)


@app.callback()
def _group() -> None:
    """Measure."""


@app.command("ops")
def ops(
    shapes: Annotated[str, typer.Argument(metavar="SHAPES", help="A shipped shape file's name, a .toml, or a .gguf.")],
    device: options.Device = options.FIRST_DEVICE,
    m: options.Ms = "1,128",
    budget: options.Budget = "5m",
    dtype: options.Dtype = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
    locks: options.Locks = None,
) -> None:
    """Race what the table serves against the stock tile, on every matmul of a shape file."""
    ms, clock = options.token_counts(m), Budget(options.seconds(budget))
    kept = options.places(state, cache, locks).ready()
    workload = workloads.load(shapes)
    errors = show.err()
    with contextlib.closing(WorkerStand(device, kept, workload)) as stand:
        limits, identity = stand.describe()
        report = bench_ops(
            stand,
            workload,
            ms,
            kernels.for_runtime(limits.runtime),
            Table.load(kept.state / "tables", identity),
            Journal(kept.state / "journal"),
            clock,
            lambda line: errors.print(
                Text(f"[{show.clock(clock.spent())}] racing  {show.short(line)}"), soft_wrap=True
            ),
            seed,
            dtype,
        )
    if json:
        show.print_json(report.to_json())
    else:
        _print(report)


def _print(report: OpsReport) -> None:
    console = show.out()
    table = grid()
    table.add_column("matmul\nserved tile")
    for name in ("stock", "served", "GFLOP/s", "ceiling", "spread"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("ratio\ninterval", no_wrap=True)
    for row in report.rows:
        race = row.race
        table.add_row(
            Text(row.problem.text(), no_wrap=True),
            show.duration(row.stock_seconds),
            show.duration(row.seconds),
            show.significant(row.gflops),
            f"{row.ceiling_share:.0%}",
            f"{row.spread:.0%}",
            f"{race.ratio:.2f}x" if row.stock else "no stock",
        )
        table.add_row(
            show.wrapping(
                show.tile(row.tile) if row.status == "tuned" else f"{row.status}: {show.tile(row.tile)}", "dim"
            ),
            *[""] * 5,
            Text(show.interval(race.low, race.high) if row.stock else ""),
        )
    console.print(show.text(f"{report.name} on {report.identity.device}, {report.identity.driver}", "bold"))
    console.print(table)
    if report.geomean is not None:
        few = sum(row.race.high >= UNBOUNDED for row in report.rows)
        mean = f"{report.geomean[0]:.2f}x" if few else show.ratio(*report.geomean)
        console.print(Text(f"geomean {mean} over {len(report.rows)} matmuls, stock / served"))
        if few:
            console.print(Text(f"{few} of them had too few rounds for an interval: give more --budget", style="yellow"))
    top = report.ceilings
    console.print(
        Text(
            f"ceilings measured here: {top.flops_per_s / 1e9:.0f} GFLOP/s {arithmetic(report.identity.runtime)},"
            f" {top.read_bytes_per_s / 1e9:.1f} GB/s read, empty launch {show.duration(top.empty_launch_s)}",
            style="dim",
        )
    )
    for problem, reason in report.left_out:
        console.print(Text(f"{problem.text()}: {reason}", style="yellow"))
