"""`warptile trace`: where the time of a prefill and of a decoded token goes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from warptile.cli import options, show
from warptile.cli.tune_view import grid
from warptile.contracts import MissingExtra, UnusableInput
from warptile.trace.comparing import Comparison, compare, kernels_of
from warptile.trace.reading import read_trace
from warptile.trace.spans import Span, Trace, merged

_SHOWN = 12
_PHASES = ("prefill", "decode")


def trace(
    path: Annotated[Path, typer.Argument(metavar="MODEL", help="A .gguf file.")],
    device: Annotated[
        str | None, typer.Option("--device", help="cuda:N or vulkan:N; default: the first there is.")
    ] = None,
    prompt: Annotated[int, typer.Option("-p", "--n-prompt", min=1, help="Tokens of the prefill.")] = 128,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="FILE", help="A trace of another run or program, to join by kind of kernel."),
    ] = None,
    phase: Annotated[
        str | None, typer.Option("--phase", help="Join only prefill or decode with the other trace.")
    ] = None,
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
) -> None:
    """Time by kernel and layer of a prefill and one decoded token, against the device's ceilings.

    FILE: `trace --json` of this program, rocprofv3's kernel CSV, an nsys or ncu CSV export, or a Chrome trace.
    """
    if phase not in (None, *_PHASES):
        raise UnusableInput(f"--phase {phase!r} is neither prefill nor decode")
    if phase is not None and against is None:
        raise UnusableInput("--phase chooses what is joined with another trace: give --against FILE with it")
    other = None if against is None else read_trace(against)
    try:
        from warptile.model.load import first_device, load
        from warptile.trace.tracing import trace_model
    except ImportError:
        raise MissingExtra("trace", "model") from None
    where = device or first_device()
    model, _ = load(path, where, places=options.places(state, cache))
    found = trace_model(model, path.name, where, prompt)
    joined = None if other is None else compare(kernels_of(found, phase), *other)
    if json:
        document = dataclasses.asdict(found)
        show.print_json(document if joined is None else {**document, "against": joined, "gap": joined.where()})
        return
    _print(found)
    if joined is not None:
        _print_joined(joined)


def _print(found: Trace) -> None:
    console = show.out()
    console.print(show.text(f"{found.model} on {found.device}", "bold"))
    for phase in _PHASES:
        spans = [span for span in found.spans if span.phase == phase]
        busy = sum(span.seconds for span in spans)
        what = f"prefill of {found.prompt} tokens" if phase == "prefill" else "one decoded token"
        console.print(
            Text(f"{what}: {show.duration(found.wall[phase])}, {show.duration(busy)} in kernels and operators", "bold")
        )
        _print_spans(merged(spans, ("kernel", "matmul", "where")), busy)
        layers = [span for span in merged(spans, ("layer",)) if span.layer][:3]
        longest = "; ".join(f"{span.layer} {show.duration(span.seconds)}" for span in layers)
        console.print(show.wrapping(f"longest layers: {longest}", "dim"))
    top = found.ceilings
    console.print(
        Text(
            f"ceilings measured here: {top.flops_per_s / 1e9:.0f} GFLOP/s, {top.read_bytes_per_s / 1e9:.1f} GB/s read",
            style="dim",
        )
    )


def _print_spans(spans: list[Span], busy: float) -> None:
    table = grid()
    table.add_column("kernel\nmatmul")
    for name in ("calls", "time", "share", "of ceiling"):
        table.add_column(name, justify="right", no_wrap=True)
    for span in spans[:_SHOWN]:
        name = show.tile(span.kernel) if ":" in span.kernel and span.where == "device" else span.kernel
        table.add_row(
            show.wrapping(name),
            str(span.calls),
            show.duration(span.seconds),
            f"{span.seconds / busy:.0%}" if busy else "-",
            f"{span.floor_seconds / span.seconds:.0%}" if span.floor_seconds and span.seconds else "-",
        )
        if span.matmul or span.where == "host":
            table.add_row(show.wrapping(span.matmul or "on the host", "dim"), *[""] * 4)
    show.out().print(table)
    if len(spans) > _SHOWN:
        rest = sum(span.seconds for span in spans[_SHOWN:])
        show.out().print(Text(f"{len(spans) - _SHOWN} more take {show.duration(rest)}", style="dim"))


def _print_joined(joined: Comparison) -> None:
    console = show.out()
    console.print(show.text(f"against {joined.source}", "bold"))
    table = grid()
    table.add_column("kind\nlongest kernel here / there")
    for name in ("here", "there", "difference"):
        table.add_column(name, justify="right", no_wrap=True)
    for pair in joined.pairs:
        sign = "+" if pair.gap >= 0 else "-"
        table.add_row(
            Text(pair.kind),
            show.duration(pair.ours),
            show.duration(pair.theirs),
            f"{sign}{show.duration(abs(pair.gap))}",
        )
        names = [side[0].kernel if side else "nothing" for side in (pair.our_kernels, pair.their_kernels)]
        table.add_row(show.wrapping(f"{show.tile(names[0])} / {names[1]}", "dim"), *[""] * 3)
    console.print(table)
    console.print(show.wrapping(joined.where()))
