"""The command line: one verb a file. Exit 0: done; 1: the answer is no; 2: unusable input, one line on stderr."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from warptile.cli import (
    bench,
    check,
    confirm,
    devices,
    explain,
    export,
    inspect,
    journal,
    pipelines,
    prove,
    report,
    study,
    table,
    trace,
    tune,
)
from warptile.cli.fleet import with_address
from warptile.contracts import WarptileError
from warptile.gguf.escape import printable
from warptile.routing import UntunedWarning

INTERRUPTED = 130
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

app = typer.Typer(
    name="warptile",
    help="Finds, proves and serves the fastest quantized-matmul tile for a GGUF model on your GPU.",
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=False,
)
app.command("tune")(tune.tune)
app.command("pipelines")(pipelines.pipelines)
app.command("devices")(devices.devices)
app.command("check")(check.check)
app.command("export")(export.export)
app.command("prove")(prove.prove)
app.command("inspect")(inspect.inspect)
app.command("study")(study.study)
app.command("explain")(explain.explain_target)
app.command("report")(report.report)
app.command("confirm")(confirm.confirm)
app.command("trace")(trace.trace)
app.add_typer(bench.app, name="bench")
app.add_typer(table.app, name="table")
app.add_typer(journal.app, name="journal")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code.

    Every error made on purpose, and every usage error, is one line on stderr and code 2. No arguments ask for help.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with _notices_in_a_line():
            code = app(with_address(given) or ["--help"], prog_name="warptile", standalone_mode=False, obj=tuple(given))
    except KeyboardInterrupt:
        return _stopped()
    except BrokenPipeError:
        # The reader of stdout is gone; the interpreter's own flush at exit must not complain about it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except WarptileError as error:
        return _refuse(str(error))
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        # What could not be written must not be tried again by the interpreter's own flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _refuse(f"the output cannot be written: {error.strerror}")
    except Exception as error:
        if type(error).__name__ == "Abort":
            return _stopped()
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        return _refuse(f"{message()} (warptile --help lists what there is)")
    return code if isinstance(code, int) else 0


@contextmanager
def _notices_in_a_line() -> Iterator[None]:
    """An UntunedWarning is one line on stderr: where in the program it was raised means nothing to who runs a verb."""
    usual = warnings.showwarning

    def shown(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, UntunedWarning):
            print("warptile: " + printable(" ".join(str(message).split())), file=sys.stderr)
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = shown
    try:
        yield
    finally:
        # Whoever put another in its place meanwhile keeps it.
        if warnings.showwarning is shown:
            warnings.showwarning = usual


def _stopped() -> int:
    print("warptile: stopped", file=sys.stderr)
    return INTERRUPTED


def _refuse(line: str) -> int:
    print("warptile: " + printable(" ".join(line.split())), file=sys.stderr)
    return 2
