"""`warptile tune`: the main job."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from warptile.cli import live, options, show, tune_view
from warptile.tune import tune as run_tune
from warptile.tuning.result import Interrupted


def tune(
    source: Annotated[
        str, typer.Argument(metavar="MODEL", help="A .gguf model, a shape file, or a shipped one's name.")
    ],
    device: options.Device = options.FIRST_DEVICE,
    m: options.Ms = "128",
    budget: options.Budget = "5m",
    explore: Annotated[
        bool, typer.Option("--explore", help="Search on even where the table holds a winner for every matmul.")
    ] = False,
    seed: options.Seed = 0,
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
) -> None:
    """Find, prove, race and keep the fastest tile for every matmul of a model."""
    ms, time = options.token_counts(m), options.seconds(budget)
    kept = options.places(state, cache)
    try:
        with live.Display(show.err(), source, device, time) as display:
            result = run_tune(source, device, ms, time, kept, display.update, seed, explore)
    except Interrupted as stop:
        show.err().print(Text(str(stop)), soft_wrap=True)
        raise typer.Exit(130) from None
    if json:
        show.print_json(result.to_json())
    else:
        tune_view.print_result(show.out(), result)
