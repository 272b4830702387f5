"""The stand that tunes run on: a device in its worker process, with a model's own weights where there is a model."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from warptile.contracts import Ceilings, Identity, Kernel, Limits, Problem, Race, Verdict, Workload
from warptile.kernels import Kernels
from warptile.places import Places
from warptile.proof.jobs import RealWeights, prove_random_job, watch_job
from warptile.race import Screening
from warptile.race.jobs import BenchWeights, race_job, screen_job
from warptile.runtimes.worker import Worker
from warptile.tuning.jobs import ceilings_job, compile_ahead_job, prove_all_job, uuid_job
from warptile.tuning.stand import Proof

T = TypeVar("T")
RESIDENT_BYTES = 300 << 20
TORCH_BYTES = 3 << 30
COPIES_BYTES = 128 << 20
KEEP = 4
"""Tiles a screening carries to its last rung."""


class WorkerStand:
    """`Stand` on the device a text names; the worker starts with the first step and anew after a fault.

    workload: its tensors, where it is a model's, are proved on beside drawn weights and raced with; otherwise all
    weights are drawn. A worker that holds more than 300 MB and three times the largest weight between two steps is
    replaced, since drivers keep what they compiled (lavapipe's code for a large register tile takes 30 MB); one with
    torch is given 3 GB more, for its libraries and the context of the device.
    made: kernels that tiles may be of beside those of this package. resident_bytes: in place of the 300 MB. worker: an
    open one of this device, in place of its own.
    Raises UnusableInput, at any step, where the device cannot be opened or another process holds it.
    """

    def __init__(
        self,
        device: str,
        places: Places,
        workload: Workload | None = None,
        made: Sequence[Kernel] = (),
        resident_bytes: int = RESIDENT_BYTES,
        worker: Worker | None = None,
    ) -> None:
        self._worker = Worker(device, places) if worker is None else worker
        self._lent = worker is not None
        self._resolve = Kernels(tuple(made))
        self._own_bytes = self._resident_bytes = resident_bytes
        rows = workload.rows if workload is not None else ()
        self._largest = max((row.nbytes // max(1, row.times) for row in rows), default=0)
        self._path = workload.source if workload is not None else ""
        is_model = workload is not None and not self._path.endswith(".toml") and Path(self._path).is_file()
        self._tensors = {
            (row.format, row.n, row.k): row.tensors[0]
            for row in (rows if is_model else ())
            if row.tensors and row.role != "experts"
        }

    def describe(self) -> tuple[Limits, Identity]:
        """See `Stand`."""
        limits = self._worker.limits()
        self._own_bytes = self._resident_bytes + (0 if limits.runtime == "vulkan" else TORCH_BYTES)
        return limits, self._worker.identity()

    def ahead(self, wanted: Sequence[tuple[str, Problem]], deadline: float) -> int:
        """See `Stand`."""
        return self._run(compile_ahead_job, list(wanted), self._resolve, deadline=deadline)

    def prove(self, tile: str, problems: Sequence[Problem], seed: int, deadline: float, level: str = "quick") -> Proof:
        """See `Stand`; level: "quick", "full" or "deep"."""
        wanted = [(problem, self._real(problem)) for problem in problems]
        return self._run(prove_all_job, tile, wanted, level, seed, deadline, self._resolve, deadline=deadline)

    def watch(self, tile: str, problem: Problem, seed: int, deadline: float) -> None:
        """See `Stand`."""
        self._run(watch_job, tile, problem, seed, self._resolve, deadline=deadline)

    def prove_random(self, tile: str, problem: Problem, seed: int, seconds: float, deadline: float) -> Verdict:
        """Random shapes of a tile for `seconds`; see `proof.random_shapes`."""
        return self._run(prove_random_job, tile, problem, seconds, seed, self._resolve, deadline=deadline)

    def screen(
        self,
        problem: Problem,
        proved: Mapping[str, int],
        seconds: float,
        seed: int,
        deadline: float,
        thorough: bool = False,
    ) -> Screening:
        """See `Stand`."""
        arguments = (problem, dict(proved), self._weights(problem, seed), seconds, seed, KEEP, self._resolve, thorough)
        return self._run(screen_job, *arguments, deadline=deadline)

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
        fresh: bool = False,
        most_rounds: int = 0,
    ) -> Race:
        """See `Stand`."""
        weights = self._weights(problem, seed)
        arguments = (
            problem,
            incumbent,
            [challenger],
            dict(proved),
            weights,
            seconds,
            seed,
            fresh,
            rounds,
            self._resolve,
            most_rounds,
        )
        return self._run(race_job, *arguments, deadline=deadline)[0]

    def race_all(
        self,
        problem: Problem,
        incumbent: str,
        challengers: Sequence[str],
        proved: Mapping[str, int],
        seconds: float,
        rounds: int,
        seed: int,
        deadline: float,
    ) -> list[Race]:
        """One paired race of all challengers against the incumbent, in their order."""
        arguments = (problem, incumbent, list(challengers), dict(proved), self._weights(problem, seed), seconds, seed)
        return self._run(race_job, *arguments, False, rounds, self._resolve, deadline=deadline)

    def uuid(self) -> str:
        """By what the driver knows the device, so that its clocks can be told from those of another of its name."""
        return self._run(uuid_job, deadline=60.0)

    def ceilings(self) -> Ceilings:
        """What the device reaches at most, measured on the first call."""
        return self._run(ceilings_job, deadline=120.0)

    def close(self) -> None:
        """See `Stand`; a worker that was given stays open."""
        if not self._lent:
            self._worker.close()

    def _tensor(self, problem: Problem) -> str:
        return self._tensors.get((problem.format, problem.n, problem.k), "") if not problem.grouped else ""

    def _real(self, problem: Problem) -> RealWeights | None:
        tensor = self._tensor(problem)
        return RealWeights(self._path, tensor) if tensor else None

    def _weights(self, problem: Problem, seed: int) -> BenchWeights:
        tensor = self._tensor(problem)
        copies = max(COPIES_BYTES, 2 * self._largest)
        if tensor:
            return BenchWeights(path=self._path, tensor=tensor, copies_bytes=copies)
        return BenchWeights(seed=seed, copies_bytes=copies)

    def _run(self, job: Callable[..., T], *arguments: Any, deadline: float) -> T:
        if _resident(self._worker.pid) > self._own_bytes + 3 * self._largest:
            self._worker.close()
        return self._worker.run(job, *arguments, deadline=deadline)


def _resident(pid: int | None) -> int:
    """Bytes of memory a process has for itself; 0 where the system does not tell."""
    try:
        resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
    except OSError:
        return 0
    return (int(resident) - int(shared)) * resource.getpagesize()
