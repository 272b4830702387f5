"""`warptile report`: the journal in pictures."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

import warptile
from warptile.cli import options, show
from warptile.cli.reading import history_of
from warptile.contracts import UnusableInput
from warptile.journal import Journal
from warptile.journal.history import History
from warptile.record import DeviceRecord, records_of
from warptile.trace.reading import read_own_trace


def report(
    out: Annotated[Path, typer.Option("--out", metavar="FILE.html", help="The page to write.")] = Path(
        "warptile-report.html"
    ),
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FOLDER", help="Write every picture there as a PNG file too.")
    ] = None,
    device: Annotated[
        str, typer.Option("--device", help="Part of a device's name in the journal; default: every device.")
    ] = "",
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="FILE", help="A file of `trace --json`, for the time by layer.")
    ] = None,
    json: options.Json = False,
    state: options.State = None,
) -> None:
    """Draw what the journal holds: roofline, ratios against the noise, time, cross-overs, the space that was searched.

    One HTML file that needs no network, for a screen, a phone or paper.
    """
    if not out.parent.is_dir():
        raise UnusableInput(f"{out}: cannot be written: there is no folder {out.parent}")
    journal = Journal(options.places(state, None).state / "journal")
    found = chosen(history_of(journal), device, journal.folder)
    traced = None if trace is None else read_own_trace(trace)
    try:
        from warptile.report import page, pictures_of
        from warptile.report.pictures import write_pngs
    except ImportError as error:
        raise UnusableInput(f"report draws with matplotlib, which cannot be loaded: {error}") from None
    parts = [(each, pictures_of(each, traced if number == 0 else None)) for number, each in enumerate(found)]
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    text = page(parts, warptile.__version__, made, traced)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UnusableInput(f"{out}: cannot be written: {error.strerror or error}") from None
    pngs = []
    for each, pictures in parts:
        pngs += [] if png is None else write_pngs(pictures, png if len(parts) == 1 else png / _folder(each))
    if json:
        devices = [{"identity": each.identity, "matmuls": len(each.matmuls)} for each, _ in parts]
        show.print_json({"page": str(out), "pictures": [str(path) for path in pngs], "devices": devices})
        return
    console = show.out()
    for each, pictures in parts:
        console.print(show.line(f"{each.identity.device}: {len(pictures)} pictures of {len(each.matmuls)} matmuls"))
    console.print(show.line(f"{show.path(out)}  {out.stat().st_size / 1e3:.0f} kB"), soft_wrap=True)
    if png is not None:
        console.print(show.line(f"{len(pngs)} PNG files in {show.path(png)}"), soft_wrap=True)


def chosen(history: History, device: str, folder: Path) -> list[DeviceRecord]:
    """Devices with races whose name or runtime holds `device` in any case. Raises UnusableInput where there is none."""
    every = records_of(history)
    if not every:
        raise UnusableInput(f"no race is on record in {folder}: warptile tune MODEL.gguf makes some")
    word = device.lower()
    found = [e for e in every if word in f"{e.identity.device} {e.identity.runtime}".lower()]
    if not found:
        names = ", ".join(f"{e.identity.device} ({e.identity.runtime})" for e in every)
        raise UnusableInput(f"no device {device!r} is on record; there are {names}")
    return found


def _folder(device: DeviceRecord) -> str:
    kept = "".join(c if c.isalnum() else "-" for c in device.identity.device.lower())
    return f"{device.identity.runtime}-{kept}"
