"""`warptile devices`: what is here, what each can do."""

from __future__ import annotations

import typer
from rich.text import Text

from warptile import devices as files
from warptile.cli import options, show
from warptile.cli.tune_view import grid
from warptile.contracts import UnusableInput
from warptile.runtimes import survey


def devices(json: options.Json = False) -> None:
    """List the devices of this machine, and the cards known from a data file."""
    found = survey()
    known = files.names(None)
    if json:
        value = {"devices": found.devices, "reasons": dict(found.reasons), "data_files": known}
        show.print_json(value)
    elif found.devices:
        table = grid()
        for name in ("device", "name", "type", "driver"):
            table.add_column(name)
        for entry in found.devices:
            table.add_row(entry.id, show.wrapping(entry.name), entry.type, show.wrapping(entry.driver))
        console = show.out()
        console.print(table)
        console.print(Text(f"known from a data file, for paper and compile only: {', '.join(known)}", style="dim"))
    if not found.devices:
        if json:
            raise typer.Exit(1)
        raise UnusableInput("; ".join(reason for _, reason in found.reasons) or "no device on this machine")
