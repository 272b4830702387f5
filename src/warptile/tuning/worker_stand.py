"""The stand that tunes run on: a device in its worker process."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from warptile.contracts import Ceilings, Identity, Limits, Problem, Race
from warptile.places import Places
from warptile.race import Screening
from warptile.runtimes.worker import Worker
from warptile.tuning.jobs import ceilings_job, prove_job, race_job, screen_job
from warptile.tuning.stand import Proof

T = TypeVar("T")
RESIDENT_BYTES = 300 << 20


class WorkerStand:
    """`Stand` on the device a text names; the worker starts with the first step and anew after a fault.

    resident_bytes: a worker that holds more than this between two steps is replaced, since drivers keep what they
    compiled: lavapipe's code for a large register tile takes 30 MB. It has no effect where the system does not tell.
    Raises UnusableInput, at any step, where the device cannot be opened or another process holds it.
    """

    def __init__(self, device: str, places: Places, resident_bytes: int = RESIDENT_BYTES) -> None:
        self._worker = Worker(device, places)
        self._resident_bytes = resident_bytes

    def describe(self) -> tuple[Limits, Identity]:
        """See `Stand`."""
        return self._worker.limits(), self._worker.identity()

    def prove(self, tile: str, problems: Sequence[Problem], seed: int, deadline: float, level: str = "quick") -> Proof:
        """See `Stand`; level: "quick" or "full"."""
        return self._run(prove_job, tile, tuple(problems), seed, deadline, level, deadline=deadline)

    def ceilings(self) -> Ceilings:
        """What the device reaches at most, measured on the first call."""
        return self._run(ceilings_job, deadline=120.0)

    def screen(
        self, problem: Problem, proved: Mapping[str, int], seconds: float, seed: int, deadline: float
    ) -> Screening:
        """See `Stand`."""
        return self._run(screen_job, problem, dict(proved), seconds, seed, deadline=deadline)

    def race(
        self,
        problem: Problem,
        incumbent: str,
        challenger: str,
        proved: Mapping[str, int],
        seconds: float,
        rounds: int,
        seed: int,
        deadline: float,
    ) -> Race:
        """See `Stand`."""
        arguments = (problem, incumbent, challenger, dict(proved), seconds, rounds, seed)
        return self._run(race_job, *arguments, deadline=deadline)

    def _run(self, job: Callable[..., T], *arguments: Any, deadline: float) -> T:
        if _resident(self._worker.pid) > self._resident_bytes:
            self._worker.close()
        return self._worker.run(job, *arguments, deadline=deadline)

    def close(self) -> None:
        """See `Stand`."""
        self._worker.close()


def _resident(pid: int | None) -> int:
    """Bytes of memory a process has for itself; 0 where it is not known."""
    try:
        resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
    except OSError:
        return 0
    return (int(resident) - int(shared)) * resource.getpagesize()
