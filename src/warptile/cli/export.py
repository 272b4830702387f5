"""`warptile export`: tuples measured on llama.cpp's own shaders, given back as a diff."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from warptile.cli import options, show
from warptile.contracts import UnusableInput
from warptile.gguf.escape import shown
from warptile.journal import Journal
from warptile.kernels.vulkan.llama_cpp import of_checkout
from warptile.llama_cpp import Checkout
from warptile.llama_cpp.exporting import Export
from warptile.llama_cpp.exporting import export as make
from warptile.runtimes import open_device
from warptile.tables import Table

NAME = "llama-cpp-tuples"


def export(
    llama_cpp: Annotated[Path, typer.Option("--llama-cpp", metavar="PATH", help="The checkout that was tuned.")],
    device: options.Device = options.FIRST_DEVICE,
    out: Annotated[
        Path | None, typer.Option("--out", help=f"Folder for {NAME}.diff and {NAME}.md; default: the diff on stdout.")
    ] = None,
    json: options.Json = False,
    state: options.State = None,
    cache: options.Cache = None,
    locks: options.Locks = None,
) -> None:
    """Write what `tune --llama-cpp` measured on this device as a diff against the checkout, with the evidence."""
    kernel = of_checkout(Checkout.open(llama_cpp))
    places = options.places(state, cache, locks).ready()
    opened = open_device(device, places)
    try:
        limits, identity = opened.limits(), opened.identity()
    finally:
        opened.close()
    table = Table.load(places.state / "tables", identity)
    made = make(kernel, limits, identity, table, Journal(places.state / "journal").read().entries)
    written = [] if out is None else _write(out, made)
    if json:
        show.print_json(
            {
                "diff": made.patch.diff,
                "text": made.text,
                "lost": list(made.patch.lost),
                "written": [str(path) for path in written],
                "tuples": [
                    {"variable": t.variable, "before": list(t.before), "after": list(t.after)} for t in made.tuples
                ],
            }
        )
    elif out is None:
        typer.echo(made.patch.diff, nl=False)
        typer.echo(made.text, nl=False, err=True)
    else:
        for path in written:
            show.out().print(show.line(show.path(path)), soft_wrap=True)


def _write(folder: Path, made: Export) -> list[Path]:
    written = [folder / f"{NAME}.diff", folder / f"{NAME}.md"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in zip(written, (made.patch.diff, made.text), strict=True):
            path.write_bytes(text.encode())
    except OSError as error:
        raise UnusableInput(f"{shown(folder)}: cannot be written: {error.strerror}") from None
    return written
