"""`warptile tune`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from warptile.cli import live, options, show, tune_view
from warptile.cli import llama_cpp as llama
from warptile.cli.confirm import print_confirmation, refuse_unloadable, run_confirm
from warptile.contracts import UnusableInput
from warptile.fleet.schedule import CHECKS
from warptile.journal import Asked
from warptile.places import Places
from warptile.tune import tune as run_tune
from warptile.tuning.result import Hint, Interrupted


def tune(
    context: typer.Context,
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL", help="A .gguf model, a shape file, or a shipped one's name."),
    ] = None,
    device: options.Device = options.FIRST_DEVICE,
    m: options.Ms = "",
    budget: options.Budget = "5m",
    explore: Annotated[
        bool, typer.Option("--explore", help="Search on even where the table holds a winner for every matmul.")
    ] = False,
    history: Annotated[
        bool,
        typer.Option("--history/--no-history", help="Correct prices by what the journal holds of this device."),
    ] = True,
    dtype: options.Dtype = None,
    routing: options.Routing = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Then hold the tuned model against the file decoded to float32.")
    ] = False,
    seed: options.Seed = 0,
    fleet: Annotated[
        str,
        typer.Option(
            "--fleet",
            metavar="[ADDRESS]",
            help="Tune on every device of a Ray cluster (HOST:PORT or auto); without ADDRESS, on this machine's.",
        ),
    ] = "",
    checks: Annotated[int, typer.Option("--checks", min=0, help="With --fleet: cards that check a winner.")] = CHECKS,
    llama_cpp: options.LlamaCpp = None,
    format: Annotated[
        str, typer.Option("--format", help="With --llama-cpp: formats of weights, such as Q4_K,Q4_1.")
    ] = "Q4_K",
    n: Annotated[int, typer.Option("--n", min=0, help="With --llama-cpp and no model: rows of the weights.")] = 0,
    k: Annotated[int, typer.Option("--k", min=0, help="With --llama-cpp and no model: elements a row.")] = 0,
    because: options.Because = "",
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
    locks: options.Locks = None,
) -> None:
    """Find, prove, race and keep the fastest tile for every matmul of a model.

    With --llama-cpp: the fastest tuple of each of llama.cpp's pipelines on its own shader, for a model's matmuls or
    without a model; by default at 32, 64 and 128 tokens, which take its small, medium and large pipeline.
    """
    given = sources or []
    source = given[0] if given else ""
    if not source and llama_cpp is None:
        raise UnusableInput("tune needs a MODEL, or a checkout of llama.cpp with --llama-cpp")
    m = m or (options.DEFAULT_M if llama_cpp is None else llama.DEFAULT_M)
    ms, time, asked = options.token_counts(m), options.seconds(budget), options.asked(context, "tune", because)
    kept = options.places(state, cache, locks)
    if confirm and (fleet or llama_cpp is not None):
        raise UnusableInput("--confirm holds one model tuned here: leave --fleet and --llama-cpp out")
    if fleet:
        _fleet(given, fleet, ms, time, kept, dtype, device, checks, json, asked)
        return
    if len(given) > 1:
        raise UnusableInput("several models are tuned with --fleet; without it, one at a time")
    if llama_cpp is not None:
        run = llama.Tune(llama_cpp, source, tuple(format.split(",")), n, k, m)
        words = options.given(device=device, state=state, cache=cache)
        llama.tune(run, device, time, kept, seed, explore, json, words, asked)
        return
    if confirm and not Path(source).is_file():
        raise UnusableInput(f"--confirm needs a model's file; {source} is none")
    if confirm:
        refuse_unloadable(Path(source))
    try:
        with live.Display(show.err(), source, device, time) as display:
            result = run_tune(
                source, device, ms, time, kept, display.update, seed, explore, dtype, routing, asked, history
            )
    except Interrupted as stop:
        show.err().print(show.line(str(stop)), soft_wrap=True)
        raise typer.Exit(130) from None
    chosen = options.given(device=device, state=state, cache=cache, dtype=dtype, routing=routing)
    hints = [(_command(hint, m, chosen), hint.why) for hint in result.hints]
    document = {**result.to_json(), "hints": [{"command": line, "why": why} for line, why in hints]}
    if not json:
        tune_view.print_result(show.out(), result, hints)
    found = run_confirm(Path(source), device, kept, asked=asked) if confirm else None
    if json:
        show.print_json(document if found is None else {**document, "confirmation": found})
    elif found is not None:
        print_confirmation(found)
    if found is not None and not found.right:
        raise typer.Exit(1)


def _fleet(
    sources: list[str],
    address: str,
    ms: tuple[int, ...],
    time: float,
    kept: Places,
    dtype: str | None,
    device: str,
    checks: int,
    json: bool,
    asked: Asked,
) -> None:
    from warptile.cli import fleet as view
    from warptile.fleet.fleet import tune_fleet

    only = "" if device == options.FIRST_DEVICE else device
    try:
        with view.FleetDisplay(show.err(), address) as display:
            result = tune_fleet(sources, address, ms, time, kept, display.update, dtype, only, checks, asked)
    except KeyboardInterrupt:
        show.err().print(show.line("stopped: what is done is in the journal; the same command resumes from there"))
        raise typer.Exit(130) from None
    if json:
        show.print_json(result.to_json())
    else:
        view.print_result(show.out(), result)
    if result.lost:
        raise typer.Exit(1)


def _command(hint: Hint, m: str, chosen: dict[str, tuple[str, ...]]) -> str:
    """The hint's command line with the options of this run that it has too."""
    words, takes = list(hint.words), ["device", "state", "cache"]
    if words[0] == "tune":
        source = words[1]
        words[1] = show.path(source) if Path(source).is_file() else source
        words += ["--m", m] if m != options.DEFAULT_M else []
        takes += ["dtype", "routing"]
    elif words[0] == "journal":
        takes = ["state"]
    return show.command(*words, *(word for name in takes for word in chosen.get(name, ())))
