"""A device in a process of its own, so that a hanging or crashing kernel costs one candidate and not the run."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from warptile.contracts.errors import DeviceLost, Timeout
from warptile.contracts.limits import Limits
from warptile.contracts.runtime import Identity
from warptile.places import Places

P = ParamSpec("P")
T = TypeVar("T")

_START_SECONDS = 120.0
_GONE = (EOFError, BrokenPipeError, ConnectionResetError)
_BOOT = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from warptile.runtimes.serving import main; main()"


class Worker:
    """One device, opened and locked by a child process that `run` gives jobs to.

    The child starts with the first job, and anew after a Timeout or DeviceLost. It ends when the parent ends,
    even by SIGKILL (a pipe only the parent holds closes), and sits in a session of its own, so Ctrl-C in a
    terminal reaches the parent alone. Not shared between threads.

    A job is a module-level function `job(runtime, *arguments) -> value`; arguments and value are pickled.
    `runtime.scratch`, a dictionary, lives as long as the child: jobs keep uploads there from one to the next.
    A job that declares the keyword `report` is given a function whose argument reaches `on_progress`.
    """

    def __init__(self, device: str, places: Places, *, validation: bool = False) -> None:
        self.device = device
        self.places = places
        self._validation = validation
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._lifeline: int | None = None
        self._about: tuple[Identity, Limits] | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the child; None while there is none."""
        return self._process.pid if self._process is not None else None

    def run(
        self,
        job: Callable[..., T],
        *arguments: Any,
        deadline: float | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> T:
        """The job's value. deadline: seconds the job may take, the start of a child not counted.

        Raises what the job raised, as the same class with the same line; Timeout past the deadline; DeviceLost
        where the child died; UnusableInput where the device cannot be opened or is in use.
        """
        if job.__module__ == "__main__" or "<" in job.__qualname__:
            raise ValueError(f"{job.__qualname__} is not a function of an importable module: a worker cannot find it")
        name = f"{job.__module__}.{job.__name__}"
        message = (job, arguments, "report" in inspect.signature(job).parameters)
        try:
            connection = self._begun(message, name)
            end = None if deadline is None else time.monotonic() + deadline
            kind, value = self._receive(connection, end, name, deadline)
            while kind == "progress":
                if on_progress is not None:
                    on_progress(value)
                kind, value = self._receive(connection, end, name, deadline)
        except _GONE:
            raise self._lost(f"in {name}") from None
        except BaseException:
            # An answer that is still to come must not be taken for the next job's.
            self.kill()
            raise
        if kind == "error":
            if isinstance(value, DeviceLost):
                self.kill()
            raise value
        result: T = value
        return result

    def identity(self) -> Identity:
        """Identity of the device."""
        return self._known()[0]

    def limits(self) -> Limits:
        """Limits of the device."""
        return self._known()[1]

    def kill(self) -> None:
        """End the child at once (SIGKILL); the next job starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
        self._hang_up()

    def close(self) -> None:
        """Let the child close its device and end; it is killed where it takes longer than ten seconds."""
        if self._lifeline is not None:
            # Tells a close from a death, which ends the child at once.
            with contextlib.suppress(BrokenPipeError):
                os.write(self._lifeline, b"c")
        self._hang_up()
        process, self._process = self._process, None
        if process is not None:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _known(self) -> tuple[Identity, Limits]:
        if self._about is None:
            self._started()
        assert self._about is not None
        return self._about

    def _begun(self, message: object, name: str) -> Connection:
        """The connection of a child that has taken the job up; one that died between two jobs is replaced once."""
        for again in (True, False):
            connection = self._started()
            try:
                connection.send(message)
                self._receive(connection, time.monotonic() + _START_SECONDS, name, _START_SECONDS)
                break
            except _GONE:
                if not again:
                    raise
                self.kill()
        return connection

    def _started(self) -> Connection:
        if self._connection is not None:
            return self._connection
        ours, theirs = socket.socketpair()
        read_end, write_end = os.pipe()
        command = [sys.executable, "-c", _BOOT, json.dumps(sys.path), str(theirs.fileno()), str(read_end)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=(theirs.fileno(), read_end),
            start_new_session=True,
        )
        theirs.close()
        os.close(read_end)
        self._lifeline = write_end
        connection = self._connection = Connection(ours.detach())
        try:
            connection.send((self.device, self.places, self._validation))
            kind, value = self._receive(connection, time.monotonic() + _START_SECONDS, "opening", _START_SECONDS)
        except _GONE:
            raise self._lost("while opening it") from None
        except BaseException:
            self.kill()
            raise
        if kind == "error":
            self.kill()
            raise value
        self._about = value
        return connection

    def _receive(self, connection: Connection, end: float | None, doing: str, seconds: float | None) -> tuple[str, Any]:
        if not connection.poll(None if end is None else max(0.0, end - time.monotonic())):
            raise Timeout(f"{doing} on {self.device} took longer than {seconds:g} s")
        message: tuple[str, Any] = connection.recv()
        return message

    def _lost(self, when: str) -> DeviceLost:
        assert self._process is not None
        code = self._process.wait()
        self.kill()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        return DeviceLost(f"the worker of {self.device} ended {how} {when}")

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._lifeline is not None:
            os.close(self._lifeline)
        self._connection = self._lifeline = None
