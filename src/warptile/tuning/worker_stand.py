"""The stand that tunes run on: a device in its worker process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warptile.contracts import Ceilings, Identity, Limits, Problem, Race
from warptile.places import Places
from warptile.race import Screening
from warptile.runtimes.worker import Worker
from warptile.tuning.jobs import ceilings_job, prove_job, race_job, screen_job
from warptile.tuning.stand import Proof


class WorkerStand:
    """`Stand` on the device a text names; the worker starts with the first step and anew after a fault.

    Raises UnusableInput, at any step, where the device cannot be opened or another process holds it.
    """

    def __init__(self, device: str, places: Places) -> None:
        self._worker = Worker(device, places)

    def describe(self) -> tuple[Limits, Identity]:
        """See `Stand`."""
        return self._worker.limits(), self._worker.identity()

    def prove(self, tile: str, problems: Sequence[Problem], seed: int, deadline: float, level: str = "quick") -> Proof:
        """See `Stand`; level: "quick" or "full"."""
        return self._worker.run(prove_job, tile, tuple(problems), seed, deadline, level, deadline=deadline)

    def ceilings(self) -> Ceilings:
        """What the device reaches at most, measured on the first call."""
        return self._worker.run(ceilings_job, deadline=120.0)

    def screen(
        self, problem: Problem, proved: Mapping[str, int], seconds: float, seed: int, deadline: float
    ) -> Screening:
        """See `Stand`."""
        return self._worker.run(screen_job, problem, dict(proved), seconds, seed, deadline=deadline)

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
        return self._worker.run(race_job, *arguments, deadline=deadline)

    def close(self) -> None:
        """See `Stand`."""
        self._worker.close()
