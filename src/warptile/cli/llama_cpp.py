"""What the verbs print about a llama.cpp checkout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from warptile.cli import live, options, show, tune_view
from warptile.contracts import Limits
from warptile.journal import Asked
from warptile.llama_cpp import Checkout
from warptile.llama_cpp.checking import DeviceCheck, HostCheck, Invalid, check_checkout, profiles
from warptile.llama_cpp.host import HostDevice
from warptile.llama_cpp.tuning import MS, Wanted, tune_checkout
from warptile.places import Places
from warptile.tuning.result import Interrupted

MOST_NAMED = 4
DEFAULT_M = ",".join(map(str, MS))


@dataclass(frozen=True)
class Tune:
    """What a `tune --llama-cpp` was asked for."""

    checkout: Path
    model: str
    formats: tuple[str, ...]
    n: int
    k: int
    m: str


def tune(
    asked: Tune,
    device: str,
    seconds: float,
    places: Places,
    seed: int,
    explore: bool,
    json: bool,
    chosen: dict[str, tuple[str, ...]],
    told: Asked,
) -> None:
    """Tune a checkout's pipelines and print as `tune` does."""
    wanted = Wanted(tuple(name.strip() for name in asked.formats), asked.n, asked.k, asked.model)
    ms = options.token_counts(asked.m)
    try:
        with live.Display(show.err(), show.path(asked.checkout), device, seconds) as display:
            result = tune_checkout(
                asked.checkout, device, wanted, ms, seconds, places, display.update, seed, explore, told
            )
    except Interrupted as stop:
        show.err().print(show.line(str(stop)), soft_wrap=True)
        raise typer.Exit(130) from None
    rest = [word for name in ("device", "state", "cache") for word in chosen.get(name, ())]
    where = ("--llama-cpp", show.path(asked.checkout))
    hints = [(show.command("export", *where, *rest), "a diff of the tuples that won, with the evidence")]
    if json:
        show.print_json({**result.to_json(), "hints": [{"command": line, "why": why} for line, why in hints]})
    else:
        tune_view.print_result(show.out(), result, hints)


def check(path: Path, subgroup: int | None, limits: Limits | None, json: bool) -> None:
    """Hold a checkout's tuples against the rules, print, and exit 1 where one is invalid."""
    checkout = Checkout.open(path)
    if limits is None:
        devices = profiles(subgroup)
    else:
        device = HostDevice.of(limits)
        devices = (device if subgroup is None else device.at_subgroup(subgroup),)
    report = check_checkout(checkout, devices)
    if json:
        show.print_json(report.to_json())
    else:
        print_check(show.out(), report)
    raise typer.Exit(report.exit_code)


def print_check(console: Console, report: HostCheck) -> None:
    """One line a device, then its invalid tuples with the rules they break."""
    console.print(show.line(report.host, "bold"))
    if report.without_shaders:
        console.print(show.line("no shader sources in this version: what they load and share is not checked", "dim"))
    for device in report.devices:
        console.print(_heading(device))
        for invalid in device.invalid:
            for line in _lines(invalid):
                console.print(line, soft_wrap=True)
        for note in device.notes:
            console.print(show.line(f"  not understood, left out: {report.host}:{note.line}: {note.what}", "yellow"))
    for note in report.notes:
        console.print(show.line(f"not understood, left out: vulkan-shaders-gen.cpp:{note.line}: {note.what}", "yellow"))


def _heading(check: DeviceCheck) -> Text:
    line = show.line(f"{check.device.name}, subgroup {check.device.subgroup}: ", "bold")
    if check.refusal:
        return line.append(f"refused by the host: {check.refusal}", style="red")
    count = f"{check.tuples} tuples of {check.pipelines} pipelines"
    if not check.invalid:
        return line.append(f"{count}, all valid", style="green")
    return line.append(f"{count}, {len(check.invalid)} invalid", style="red")


def _lines(invalid: Invalid) -> list[Text]:
    numbers = " ".join(f"{name}={value}" for name, value in invalid.numbers.items())
    rest = len(invalid.used_by) - MOST_NAMED
    used = ", ".join(invalid.used_by[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
    lines = [show.line(f"  {invalid.where}  {invalid.variable or 'a tuple in place'}  {numbers}")]
    lines += [show.line(f"      broken rule: {rule.text()}", "red") for rule in invalid.broken]
    return [*lines, show.line(f"      used by {used}", "dim")]
