"""`warptile check`: is this tile valid on that device, what does it cost on paper."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from warptile import check as checking
from warptile import devices as files
from warptile.cli import options, show
from warptile.contracts import Limits
from warptile.places import Places
from warptile.runtimes import open_device


def check(
    tile: Annotated[str, typer.Option("--tile", help="KERNEL:field=value,... or the values alone, with --kernel.")],
    kernel: Annotated[str | None, typer.Option("--kernel", help="Such as mul_mm.")] = None,
    format: Annotated[str, typer.Option("--format", help="The weights' format.")] = "Q4_K",
    device: Annotated[
        str, typer.Option("--device", help="A live device, or a card's data file.")
    ] = options.FIRST_DEVICE,
    n: Annotated[int, typer.Option("--n", min=1, help="Rows of the weights.")] = checking.DEFAULT_N,
    k: Annotated[int, typer.Option("--k", min=1, help="Elements a row.")] = checking.DEFAULT_K,
    m: Annotated[int, typer.Option("--m", min=1, help="Number of tokens.")] = checking.DEFAULT_M,
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
) -> None:
    """Say whether a tile is valid on a device, the rule it breaks, and what it costs. Nothing is run."""
    limits = limits_of(device, options.places(state, cache))
    report = checking.check(tile, limits, format, kernel=kernel, n=n, k=k, m=m)
    if json:
        show.print_json(report.to_json())
    else:
        show.out().print(render(report))
    raise typer.Exit(report.exit_code)


def render(report: checking.CheckReport) -> Table:
    """The report as a rich renderable: the verdict in colour, then one line a number. Values are never markup."""
    table = Table.grid(padding=(0, 2))
    styles = {"verdict": "bold green" if report.valid else "bold red", "broken rule": "red", "note": "dim"}
    for name, value in checking.rows(report):
        style = styles.get(name, "")
        table.add_row(
            Text(name, style="dim"), show.wrapping(value, style) if name == "tile" else Text(value, style=style)
        )
    return table


def limits_of(device: str, places: Places) -> Limits:
    """Limits of a live device ("vulkan:0") or of a card's data file ("mali-g610")."""
    if ":" not in device:
        return files.by_name(device)
    runtime = open_device(device, places.ready())
    try:
        return runtime.limits()
    finally:
        runtime.close()
