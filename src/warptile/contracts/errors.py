"""Errors. Each carries one line that says what and where; the command line prints it and exits 2.

`CandidateRejected` and its children concern one candidate: the loop records them and goes on.
"""

from __future__ import annotations


class WarptileError(Exception):
    """Base of every error warptile raises on purpose. `str(error)` is one line for a person.

    What cannot be printed is escaped, since messages quote files and names from elsewhere.
    """

    def __str__(self) -> str:
        return "".join(c if c.isprintable() else repr(c)[1:-1] for c in super().__str__())


class UnusableInput(WarptileError):
    """A file, device, folder or argument that cannot be used; says which and why."""


class MissingExtra(WarptileError):
    """An optional dependency is needed and absent; names the extra that brings it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the optional extra: pip install 'warptile[{extra}]'")
        self.what = what
        self.extra = extra

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.what, self.extra))


class CandidateRejected(WarptileError):
    """One candidate (kernel and tile on a problem) is out. `outcome` is the word the journal keeps."""

    outcome = "rejected"


class InvalidTile(CandidateRejected):
    """The tile breaks a rule of its kernel. `rule` states it, `numbers` are the values that break it."""

    outcome = "invalid"

    def __init__(self, rule: str, numbers: str) -> None:
        super().__init__(f"invalid tile: {rule} ({numbers})")
        self.rule = rule
        self.numbers = numbers

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.rule, self.numbers))


class DoesNotFit(InvalidTile):
    """The tile is well-formed but exceeds a limit of the device (shared memory, workgroup size, feature)."""

    outcome = "does_not_fit"


class CompileFailed(CandidateRejected):
    """The compiler refused the kernel; the message is its first line."""

    outcome = "compile"


class Wrong(CandidateRejected):
    """The proof failed; the message names the check that spoke and the first wrong element."""

    outcome = "wrong"


class Timeout(CandidateRejected):
    """The candidate passed its deadline; its worker was ended and restarted."""

    outcome = "timeout"


class DeviceLost(CandidateRejected):
    """The device or the worker that held it died while the candidate ran."""

    outcome = "device_lost"


class Untimed(CandidateRejected):
    """No time of the candidate is its own: the host could not keep the device in work however long that waited."""

    outcome = "untimed"


class OutOfMemory(CandidateRejected):
    """The device or host could not hold the candidate's buffers."""

    outcome = "out_of_memory"
