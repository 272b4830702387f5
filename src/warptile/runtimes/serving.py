"""The child's side of `runtimes.worker`: open and lock the device, then do jobs until the parent hangs up."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import traceback
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from warptile.contracts.errors import OutOfMemory, WarptileError
from warptile.contracts.runtime import Runtime
from warptile.runtimes.lock import DeviceLock
from warptile.runtimes.registry import find_device, open_device


def main() -> None:
    """Serve the connection whose descriptor is the second argument; the third is the parent's lifeline."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(int(sys.argv[3]),), daemon=True).start()
    connection = Connection(int(sys.argv[2]))
    device, places, validation = connection.recv()
    try:
        lock = DeviceLock(find_device(device), places).acquire()
        runtime = open_device(device, places, validation=validation)
    except BaseException as error:
        connection.send(("error", portable(error)))
        return
    connection.send(("ready", (runtime.identity(), runtime.limits())))
    _serve(connection, runtime)
    runtime.close()
    lock.release()


def portable(error: BaseException) -> BaseException:
    """The error where it survives pickling as itself, else a RuntimeError with its class and line.

    A MemoryError is OutOfMemory: the host could not hold what one candidate needs. Another that is not warptile's own
    carries its traceback as a note.
    """
    if isinstance(error, MemoryError):
        return OutOfMemory(f"the host's memory is too small: {error or 'nothing is left'}")
    if not isinstance(error, WarptileError):
        error.add_note("in the worker:\n" + "".join(traceback.format_exception(error)))
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:
        copy = None
    if type(copy) is type(error) and str(copy) == str(error):
        return error
    return RuntimeError(f"{type(error).__name__}: {error}")


def _serve(connection: Connection, runtime: Runtime) -> None:
    while True:
        try:
            message = connection.recv_bytes()
        except (EOFError, ConnectionResetError):
            return
        answer: tuple[str, Any]
        try:
            connection.send(("begun", None))
            job, arguments, reports = pickle.loads(message)
            keywords = {"report": partial(_report, connection)} if reports else {}
            answer = ("value", job(runtime, *arguments, **keywords))
            content = pickle.dumps(answer)
        except Exception as error:
            content = pickle.dumps(("error", portable(error)))
        try:
            connection.send_bytes(content)
        except (BrokenPipeError, ConnectionResetError):
            return


def _report(connection: Connection, value: object) -> None:
    connection.send(("progress", value))


def _end_with_parent(lifeline: int) -> None:
    """Only the parent holds the other end: no byte and the end of the pipe mean that it died.

    A parent that closes in good order writes a byte first, and waits for the device to be closed.
    """
    if not os.read(lifeline, 1):
        os._exit(1)
