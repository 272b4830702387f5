"""`warptile explain`: why this tile."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from warptile import devices, kernels, words
from warptile.cli import options, show
from warptile.cli.reading import history_of
from warptile.cli.tune_view import grid
from warptile.contracts import Ceilings, Limits, Problem, UnusableInput
from warptile.explain import Explanation, Side, Subject, explain, subject
from warptile.journal import Journal
from warptile.record import DeviceRecord, MatmulRecord, records_of

_TYPES = ("fp32", "fp16", "bf16")


def explain_target(
    target: Annotated[
        str, typer.Argument(metavar="MODEL|PROBLEM", help="A .gguf, a shape file, or 'Q4_K n=4096 k=14336 m=512'.")
    ],
    device: Annotated[
        str,
        typer.Option(
            "--device",
            help="Part of a device's name in the journal, or a card's data file; default: the last measured.",
        ),
    ] = "",
    m: Annotated[str, typer.Option("--m", help="Numbers of tokens; default: those on record.")] = "",
    json: options.Json = False,
    state: options.State = None,
) -> None:
    """Say why a tile serves a matmul: the race behind it, the roofline, what limits residency, price against compiler
    against measurement, and the runner-up.

    From the journal alone: no device is opened.
    """
    journal = Journal(options.places(state, None).state / "journal")
    found = _device(records_of(history_of(journal)), device)
    record, limits = found if isinstance(found, tuple) else (found, found.limits)
    on_record = sorted({each.problem.m for each in record.matmuls}) if isinstance(record, DeviceRecord) else []
    ms = options.token_counts(m) if m else tuple(on_record) or options.token_counts(options.DEFAULT_M)
    asked = subject(target, ms)
    explained = [e for p in asked.problems for e in _explained(p, asked, record, limits)]
    if not explained:
        known = limits is not None
        why = (
            "no kernel here has a valid tile for it" if known else "the journal has no limits of the device to price by"
        )
        raise UnusableInput(f"{asked.name}: nothing is on record, and {why}")
    if json:
        show.print_json({"subject": asked.name, "explanations": explained})
        return
    console = show.out()
    if asked.single:
        for number, each in enumerate(explained):
            if number:
                console.print()
            _print(console, each)
    else:
        _print_all(console, explained)


def _device(every: tuple[DeviceRecord, ...], word: str) -> DeviceRecord | tuple[None, Limits]:
    found = [e for e in every if word.lower() in f"{e.identity.device} {e.identity.runtime}".lower()]
    if found:
        return found[0]
    if not word:
        raise UnusableInput("no race is on record: tune a model first, or name a card with --device, such as h200")
    known = [r for r in ("cuda", "hip", "vulkan") if word.lower() in devices.names(r)]
    if not known:
        names = ", ".join(e.identity.device for e in every) or "none"
        raise UnusableInput(f"no device {word!r} on record (there: {names}) and no data file of a card of that name")
    return None, devices.by_name(word, known[0])


def _explained(
    problem: Problem, asked: Subject, record: DeviceRecord | None, limits: Limits | None
) -> list[Explanation]:
    mine = [r for r in record.matmuls if _same(r.problem, problem, asked.typed)] if record is not None else []
    runtime = record.identity.runtime if record is not None else limits.runtime if limits is not None else ""
    name = record.identity.device if record is not None else limits.name if limits is not None else ""
    ceilings: Ceilings | None = record.ceilings if record is not None else None
    usable = kernels.for_runtime(runtime)
    pairs: list[tuple[Problem, MatmulRecord | None]] = [(r.problem, r) for r in mine] or [
        (_typed(problem, limits), None)
    ]
    found = (explain(name, p, r, limits, ceilings, usable) for p, r in pairs)
    return [each for each in found if each is not None]


def _typed(problem: Problem, limits: Limits | None) -> Problem:
    kind = limits.activations if limits is not None and problem.x_dtype == "fp32" else problem.x_dtype
    return replace(problem, x_dtype=kind, y_dtype=kind)


def _same(raced: Problem, wanted: Problem, typed: bool) -> bool:
    names = ("format", "n", "k", "m", "experts", "top_k", "x_slots", "summed") + (("x_dtype",) if typed else ())
    return all(getattr(raced, name) == getattr(wanted, name) for name in names)


def _print_all(console: Console, explained: list[Explanation]) -> None:
    table = grid()
    table.add_column("matmul, M\ntile", min_width=34)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("of the\nroof", justify="right", no_wrap=True)
    table.add_column("bound by")
    table.add_column("price's\nplace", justify="right", no_wrap=True)
    table.add_column("ahead of\nrunner-up", justify="right", no_wrap=True)
    for each in explained:
        roof = each.roof
        table.add_row(
            show.text(f"{show.matmul(each.problem)} M={each.problem.m}"),
            show.duration(each.chosen.seconds) if each.basis == "measured" else "not raced",
            f"{roof.share:.0%}" if roof and roof.share else "-",
            roof.bound if roof else "-",
            f"{each.place.place} of {each.place.valid}" if each.place else "-",
            f"{each.ahead:.2f}x" if each.ahead else "-",
        )
        table.add_row(show.wrapping(show.tile(each.tile), "dim"), *[""] * 5)
    console.print(show.text(explained[0].device, "bold"))
    console.print(table)
    first = explained[0].problem
    matmul = f"{first.format} n={first.n} k={first.k} m={first.m}"
    console.print(Text("one of them in full: ", style="dim").append(show.command("explain", matmul)), soft_wrap=True)


def _print(console: Console, each: Explanation) -> None:
    console.print(show.text(f"{each.problem.text()} {each.problem.x_dtype} on {each.device}", "bold"), soft_wrap=True)
    lines = grid()
    lines.show_header = False
    lines.add_column(no_wrap=True, style="dim")
    lines.add_column()
    for name, value in _lines(each):
        lines.add_row(name, show.wrapping(value))
    console.print(lines)
    console.print()
    console.print(_sides(each))


def _lines(each: Explanation) -> list[tuple[str, str]]:
    lines = [("tile", show.tile(each.tile))]
    if each.race is not None:
        race = each.race
        against = "the best challenger against it" if each.outcome != "accept" else "against stock"
        bounds = show.ratio(race.ratio, race.low, race.high)
        lines.append(
            (each.outcome or "raced", f"{against} {bounds}, {race.rounds} rounds, A/A floor {words.floor(race.floor)}")
        )
    elif each.outcome:
        lines.append((each.outcome, "without a race of its own"))
    lines.append(("why", each.reason))
    if each.roof is not None:
        roof = each.roof
        share = "" if roof.share is None else f"; measured at {roof.share:.0%} of it"
        lines.append(
            (
                "roofline",
                f"{roof.intensity:.1f} FLOP a byte, bend at {roof.bend:.1f}: bound by {roof.bound}; at best"
                f" {show.duration(roof.floor_seconds)}{share}",
            )
        )
    if each.limit:
        lines.append(("resident", each.limit))
    if each.chosen.price is not None:
        price = each.chosen.price
        lines.append(("launch", f"{price.workgroups} workgroups, last wave {price.fill:.0%} full"))
    if each.place is not None:
        place = each.place
        lines.append(
            ("price", f"put it in place {place.place} of {place.valid} valid tiles ({place.considered} looked at)")
        )
    if each.runner_up is not None and each.ahead is not None:
        arms = () if each.race is None else (each.race.incumbent.tile, each.race.challenger.tile)
        why = "its race did not settle that" if each.runner_up.tile in arms else "screened, not raced against it"
        doubt = "" if each.ahead >= 1 else f": less, but {why}"
        lines.append(("runner-up", f"{show.tile(each.runner_up.tile)}, {each.ahead:.2f} times its seconds{doubt}"))
    lines += [("other kernel", f"{show.tile(tile)}, {times:.2f} times its seconds") for _, tile, times in each.kernels]
    if each.timed or each.refused:
        out = ", ".join(f"{count} {outcome}" for outcome, count in each.refused)
        lines.append(("searched", f"{each.timed} tiles timed" + (f"; out before a race: {out}" if out else "")))
    return lines


def _sides(each: Explanation) -> object:
    table = grid()
    table.add_column("")
    sides = [("chosen", each.chosen), ("stock", each.stock), ("runner-up", each.runner_up)]
    shown = [(name, side) for name, side in sides if side is not None]
    for name, _ in shown:
        table.add_column(name, justify="right")
    rows = (
        ("registers a thread, price", lambda s: s.price and str(s.price.registers)),
        ("registers a thread, compiler", lambda s: s.resources and _known(s.resources.registers)),
        ("spilled, price", lambda s: s.price and ("yes" if s.price.spills else "no")),
        ("spilled, compiler", _spilled),
        ("shared bytes, price", lambda s: s.price and str(s.price.shared_bytes)),
        ("shared bytes, compiler", lambda s: s.resources and _known(s.resources.shared_bytes)),
        ("threads resident, price", lambda s: s.price and str(s.price.resident_threads)),
        ("time, price", lambda s: s.price and f"({show.duration(s.price.seconds)})"),
        ("time, measured", lambda s: s.seconds and show.duration(s.seconds)),
    )
    for name, value in rows:
        table.add_row(name, *[value(side) or "-" for _, side in shown])
    return table


def _known(value: int | None) -> str:
    return "-" if value is None else str(value)


def _spilled(side: Side) -> str:
    if side.resources is None:
        return "-"
    if side.resources.spilled_registers is not None:
        return f"{side.resources.spilled_registers} registers"
    return "-" if side.resources.spill_bytes is None else f"{side.resources.spill_bytes} bytes"
