"""One process at a time on a device: two tuners on one card would time each other."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from pathlib import Path
from types import TracebackType

from warptile.contracts.errors import UnusableInput
from warptile.places import Places
from warptile.runtimes.entry import DeviceEntry


class DeviceLock:
    """An exclusive `flock` on `places.locks/NAME.lock`, which holds the owner's process id.

    The folder is the machine's, so it does not matter which journal or cache a process uses, nor whose it is.

    The kernel releases it when the process ends, however it ends. `acquire` raises UnusableInput naming the
    process that holds it.
    """

    def __init__(self, entry: DeviceEntry, places: Places) -> None:
        self.entry = entry
        self.path: Path = places.locks / f"{lock_name(entry)}.lock"
        self._file: int | None = None

    def acquire(self) -> DeviceLock:
        """Take the lock or raise UnusableInput at once. Taking it twice through one object is one taking."""
        if self._file is not None:
            return self
        try:
            file = _opened(self.path)
        except OSError as error:
            raise UnusableInput(f"lock {self.path} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(file, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(file)
            raise UnusableInput(f"{self.entry.id} ({self.entry.name}) is in use by process {holder}") from None
        try:
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(file)
            raise UnusableInput(f"lock {self.path} cannot be written: {error.strerror}") from None
        self._file = file
        return self

    def release(self) -> None:
        """Give the lock back. The file stays: removing it would let two processes lock two files of one name."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> DeviceLock:
        return self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.release()


def _opened(path: Path) -> int:
    """The file of a lock, made with its folder where it is not there; both may be used by every user."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError):
            path.parent.chmod(0o1777)
    while True:
        # Systems that protect files in folders of all users refuse to open another user's file with O_CREAT.
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        with contextlib.suppress(FileExistsError):
            file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL, 0o666)
            os.fchmod(file, 0o666)
            return file


def lock_name(entry: DeviceEntry) -> str:
    """Name of the lock: the device's name and number, whatever the runtime; "software" for all software devices.

    One card seen through Vulkan and through CUDA is one lock where both give it the same number and name.
    """
    if entry.type == "software":
        return "software"
    name = re.sub(r"[^a-z0-9]+", "-", entry.name.casefold()).strip("-")
    return f"{name}-{entry.id.partition(':')[2]}"
