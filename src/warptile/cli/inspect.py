"""`warptile inspect`: what a file of compiled GPU code holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from warptile.cli import options, show
from warptile.cli.tune_view import grid
from warptile.contracts import UnusableInput
from warptile.inspection import FunctionCode, Inspection
from warptile.inspection import inspect as read


def inspect(
    file: Annotated[Path, typer.Argument(help="cubin, fat binary, AMD code object, bundle, library or SPIR-V.")],
    kernel: Annotated[str, typer.Option("--kernel", help="Only kernels of this name; * and ? stand for any.")] = "*",
    arch: Annotated[str, typer.Option("--arch", help="Only this architecture, such as sm_90 or gfx1100.")] = "",
    device: options.Device = options.FIRST_DEVICE,
    constant: Annotated[
        list[str] | None, typer.Option("--constant", help="ID=VALUE, a specialization constant of SPIR-V; repeatable.")
    ] = None,
    objdump: Annotated[
        Path | None, typer.Option("--objdump", help="An llvm-objdump for AMD code, where none is found.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Read compiled GPU code: registers, spills in loops or outside, shared bytes, code size. Nothing is run."""
    found = read(file, device, dict(map(_constant, constant or [])), kernel, arch, objdump)
    if json:
        show.print_json(found.to_json())
    else:
        _print(found)


def _constant(text: str) -> tuple[int, int]:
    number, _, value = text.partition("=")
    try:
        return int(number), int(value, 0)
    except ValueError:
        raise UnusableInput(f"--constant {text!r} is not ID=VALUE in whole numbers") from None


def _print(found: Inspection) -> None:
    console = show.out()
    console.print(show.line(f"{found.path}: {found.kind}", "bold"))
    if found.compiler:
        console.print(show.line(f"compiled by {found.compiler}", "dim"))
    table = grid()
    table.add_column("kernel", ratio=1)
    table.add_column("for")
    for name in ("registers", "spilled", "spills", "shared", "code", "matrix", "loops"):
        table.add_column(name, justify="right")
    for function in found.functions:
        table.add_row(show.wrapping(function.readable_name), show.text(function.architecture), *_numbers(function))
    if found.functions:
        console.print(table)
        console.print(show.line("spilled: bytes a thread; shared, code: bytes; -: not stated", "dim"))
    for note in found.notes:
        console.print(show.line(f"note: {note}", "yellow"))


def _numbers(function: FunctionCode) -> list[str]:
    def shown(value: int | None) -> str:
        return "-" if value is None else str(value)

    return [
        shown(function.registers), shown(function.spill_bytes), function.spills, shown(function.shared_bytes),
        shown(function.code_bytes), shown(function.matrix), shown(function.loops),
    ]  # fmt: skip
