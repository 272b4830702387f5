"""Compiling in processes of their own: most of what Triton does to a kernel holds the interpreter's lock."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, SimpleQueue

from warptile.contracts import CandidateRejected
from warptile.kernels.triton.program import Program

MOST_PROCESSES = 16
_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]);"
    "from warptile.runtimes.triton.side_by_side import main; main()"
)
_GONE = (EOFError, BrokenPipeError, ConnectionResetError)


def at_once() -> int:
    """How many programs are compiled at once: as many as this process may use processors, 16 at most."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST_PROCESSES, processors)


class Compilers:
    """Processes that compile programs for one architecture into Triton's cache, as many as the host has processors.

    architecture: "sm_90", "gfx1200". cache: Triton's folder, None for its own. A process starts with the first work
    there is for it and ends with `close`, or with this process however that ends. They import nothing of the program
    that runs here, which need not be prepared for them.
    """

    def __init__(self, architecture: str, cache: Path | None) -> None:
        self._target = (architecture, cache)
        self._idle: list[_Compiler] = []
        self._closing = threading.Event()

    def keys(self, programs: Sequence[Program]) -> dict[Program, str]:
        """Compile programs side by side; the keys of those that compiled.

        One that fails, or whose process dies, is left out: whoever asks for it by itself is told why. Fewer than two
        programs, or a single processor, are not worth a process: nothing is compiled.
        """
        count = min(at_once(), len(programs))
        if count < 2:
            return {}
        self._closing.clear()
        todo: SimpleQueue[Program] = SimpleQueue()
        for program in dict.fromkeys(programs):
            todo.put(program)
        while len(self._idle) < count:
            self._idle.append(_Compiler(self._target))
        found: dict[Program, str] = {}

        def work(compiler: _Compiler) -> None:
            with suppress(Empty):
                while not self._closing.is_set():
                    program = todo.get_nowait()
                    if key := compiler.key(program):
                        found[program] = key

        with ThreadPoolExecutor(count) as pool:
            list(pool.map(work, self._idle[:count]))
        return found

    def close(self) -> None:
        """End the processes, at work or not; the next work starts new ones."""
        self._closing.set()
        while self._idle:
            self._idle.pop().close()


class _Compiler:
    """One process; started anew where it died."""

    def __init__(self, target: tuple[str, Path | None]) -> None:
        self._target = target
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def key(self, program: Program) -> str:
        """The key of a program that is in the cache now; "" where it did not compile."""
        try:
            connection = self._started()
            connection.send(program)
            found: str = connection.recv()
        except _GONE:
            self.close()
            return ""
        return found

    def close(self) -> None:
        """End it."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._connection = self._process = None

    def _started(self) -> Connection:
        if self._connection is None:
            ours, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _BOOT, json.dumps(sys.path), str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    # No card is touched by what only compiles.
                    env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""},
                )
            self._connection = Connection(ours.detach())
            self._connection.send(self._target)
        return self._connection


def main() -> None:
    """The process's side: compile what comes until the other end is closed."""
    connection = Connection(int(sys.argv[2]))
    try:
        architecture, cache = connection.recv()
        while True:
            program = connection.recv()
            try:
                key = compiled(program, architecture, cache)
            except CandidateRejected:
                key = ""
            connection.send(key)
    except _GONE:
        return


def compiled(program: Program, architecture: str, cache: Path | None) -> str:
    """The program's key; its machine code is in the cache. Raises CompileFailed, DoesNotFit."""
    from warptile.runtimes.triton.backends import compiled_key
    from warptile.runtimes.triton.compiling import gpu_target, machine_code

    hip = architecture.startswith("gfx")
    target = gpu_target("hip" if hip else "cuda", architecture)
    key = compiled_key(program, target, hip)
    for build in program.builds:
        machine_code(build, target, key, cache)
    return key
