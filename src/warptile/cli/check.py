"""`warptile check`: is this tile valid on that device, what does it cost on paper, what does a compiler make of it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from warptile import check as checking
from warptile import devices as files
from warptile import kernels
from warptile.cli import llama_cpp as llama
from warptile.cli import options, show
from warptile.contracts import Limits, Problem, UnusableInput
from warptile.places import Places
from warptile.runtimes import open_device


def check(
    context: typer.Context,
    tile: Annotated[
        str, typer.Option("--tile", help="KERNEL:field=value,... or the values alone, with --kernel.")
    ] = "",
    kernel: Annotated[str | None, typer.Option("--kernel", help="Such as mul_mm.")] = None,
    format: Annotated[str, typer.Option("--format", help="The weights' format.")] = "Q4_K",
    device: Annotated[
        str, typer.Option("--device", help="A live device, a card's data file, or an architecture such as gfx942.")
    ] = options.FIRST_DEVICE,
    n: Annotated[int, typer.Option("--n", min=1, help="Rows of the weights.")] = checking.DEFAULT_N,
    k: Annotated[int, typer.Option("--k", min=1, help="Elements a row.")] = checking.DEFAULT_K,
    m: Annotated[int, typer.Option("--m", min=1, help="Number of tokens.")] = checking.DEFAULT_M,
    compile: Annotated[
        bool, typer.Option("--compile", help="Compile Triton tiles for the card; without --tile, the shipped ones.")
    ] = False,
    dtype: Annotated[
        str, typer.Option("--dtype", help="Activations of Triton's kernels: fp16, bf16 or fp32.")
    ] = "fp16",
    llama_cpp: options.LlamaCpp = None,
    subgroup: Annotated[
        int | None, typer.Option("--subgroup", min=1, help="With --llama-cpp: only this subgroup size.")
    ] = None,
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
) -> None:
    """Say whether a tile is valid on a device, the rule it breaks, and what it costs. Nothing is run.

    With --llama-cpp: whether the tuples of a llama.cpp checkout are, on common devices or on the one given.
    """
    if llama_cpp is not None:
        named = context.get_parameter_source("device")
        given = named is not None and named.name != "DEFAULT"
        llama.check(llama_cpp, subgroup, limits_of(device, options.places(state, cache)) if given else None, json)
    if compile:
        _compile(tile, kernel, checking.problem_of(format, n, k, m, dtype), device, options.places(state, cache), json)
    if not tile:
        raise UnusableInput("check needs --tile; only --compile has tiles of its own")
    name = tile.partition(":")[0] if ":" in tile else kernel
    runtime = kernels.by_name(name).runtime if name else "vulkan"
    limits = limits_of(device, options.places(state, cache), runtime)
    x_dtype = dtype if runtime == "triton" else "fp32"
    report = checking.check(tile, limits, format, kernel=kernel, n=n, k=k, m=m, dtype=x_dtype)
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


def limits_of(device: str, places: Places, runtime: str = "vulkan") -> Limits:
    """Limits of a live device ("vulkan:0") or of a card's data file ("mali-g610"), as kernels of `runtime` see them."""
    if ":" not in device:
        return files.compile_only(device) if runtime == "triton" else files.by_name(device)
    opened = open_device(device, places.ready())
    try:
        return opened.limits()
    finally:
        opened.close()


def _compile(tile: str, kernel: str | None, problem: Problem, device: str, places: Places, json: bool) -> None:
    from warptile import offline

    limits = limits_of(device, places, "triton")
    if tile:
        tiles = [(*kernels.parse_tile(tile, kernel), "given")]
    else:
        only = None if kernel is None else [kernels.by_name(kernel)]
        tiles = offline.shipped_tiles(problem, limits, only)
    report = offline.compile_tiles(problem, limits, tiles, places.ready().cache / "triton")
    if json:
        show.print_json(report.to_json())
    else:
        table = Table.grid(padding=(0, 2))
        styles = {"tile": "bold", "broken rule": "bold red", "compiler": "bold red"}
        for name, value in offline.lines(report):
            spilled = name == "spills" and "in the K loop" in value and "none in the K loop" not in value
            style = "bold red" if spilled else styles.get(name, "")
            table.add_row(show.text(name, "dim"), show.wrapping(value, style))
        show.out().print(table)
    raise typer.Exit(report.exit_code)
