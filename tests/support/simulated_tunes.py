"""Whole tunes on a made-up device: the shipped loop, screening, race and decision, on a clock made of recorded noise.

Only what a device does is made up: how long a launch takes. Proofs always succeed, since the question is what the
race concludes of right tiles.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tests.fakes import FakeKernel, FakeRuntime
from tests.support.noise import Noise, Stream
from warptile.contracts import (
    Ceilings,
    Identity,
    Launch,
    Limits,
    Price,
    Problem,
    Race,
    Source,
    Tile,
    Verdict,
    Workload,
    WorkloadRow,
)
from warptile.places import Places
from warptile.proof.version import PROOF_VERSION
from warptile.race import Screening
from warptile.race.jobs import BenchWeights, race_job, screen_job
from warptile.tune import tune_on
from warptile.tuning.budget import Budget
from warptile.tuning.result import TuneResult
from warptile.tuning.stand import Proof

PROBLEM = Problem("Q4_0", n=24, k=64, m=3)
WORKLOAD = Workload("one matmul", "one.toml", (WorkloadRow("Q4_0", 24, 64, "linear", ("a",), 1),))
TILES = 64
PROOF_S = 0.3
SUBMISSION_S = 2e-4
"""Host seconds around a submission: recording it, and reading what came back."""


@dataclass(frozen=True)
class SimulatedTile(Tile):
    """tile_m, tile_n, tile_k: what the made-up kernel's source asks of any tile. fault: none."""

    kernel: ClassVar[str] = "fake.matmul"
    number: int = 0
    tile_m: int = 8
    tile_n: int = 8
    tile_k: int = 32
    fault: str = "none"


class SimulatedKernel(FakeKernel):
    """64 tiles that all do the same; tile i takes `factor[i]` times the device's seconds, and its price says so."""

    tile_type = SimulatedTile  # type: ignore[assignment]

    def __init__(self, factor: Mapping[int, float], seconds: float) -> None:
        super().__init__()
        self.factor, self.seconds = factor, seconds

    def space(self, problem: Problem, limits: Limits) -> Iterator[Any]:
        for number in range(TILES):
            yield SimulatedTile(number)

    def stock(self, problem: Problem, limits: Limits) -> Any:
        return SimulatedTile(0)

    def price(self, tile: Any, problem: Problem, limits: Limits) -> Price:
        return Price(1, 32, 0, 0, "unknown", 0, 1.0, 1, 1.0, self.factor.get(tile.number, 1.0) * self.seconds)


class SimulatedDevice(FakeRuntime):
    """Launches take factor * recorded seconds * exp(recorded noise + faults)."""

    def __init__(self, kernel: SimulatedKernel, noise: Noise, rng: np.random.Generator) -> None:
        super().__init__(kernel.programs(), cache_bytes=2000)
        self._factor, self._base = kernel.factor, noise.recording.seconds
        self._stream, self._rng = Stream(noise.recording, rng), rng
        self._faults = [make() for make in noise.faults]

    def time(self, launches: Sequence[Launch]) -> list[float]:
        tiles = [launch.scalars[5] for launch in launches]
        logs = self._stream.submission(len(launches))
        start = self.now + self._base * np.arange(len(launches))
        for fault in self._faults:
            logs = logs + fault(self._rng, start)
        factor = np.array([self._factor.get(tile.number, 1.0) for tile in tiles])  # type: ignore[attr-defined]
        taken = self._base * factor * np.exp(logs)
        self.now += float(taken.sum()) + SUBMISSION_S
        self._ids = [launch.binary.id for launch in launches]
        return [float(t) for t in taken]


@dataclass
class SimulatedStand:
    """The loop's `Stand` on such a device, by the jobs that a worker runs."""

    device: SimulatedDevice
    kernel: SimulatedKernel

    def _resolve(self, text: str) -> tuple[Any, Any]:
        return self.kernel, SimulatedTile.parse(text)

    def describe(self) -> tuple[Limits, Identity]:
        return dataclasses.replace(self.device.limits(), arrangement="rows"), self.device.identity()

    def ceilings(self) -> Ceilings:
        return self.device.ceilings()

    def ahead(self, wanted: Sequence[tuple[str, Problem]], deadline: float) -> int:
        return 1

    def prove(self, tile: str, problems: Sequence[Problem], seed: int, deadline: float) -> Proof:
        self.device.now += PROOF_S
        source: Source = self.kernel.source(self._resolve(tile)[1], problems[0], self.device.limits())
        binary = self.device.compile(source)
        verdict = Verdict(True, ("bound",), binary=binary.id, version=PROOF_VERSION)
        return Proof(verdict, binary.key, 0.1)

    def watch(self, tile: str, problem: Problem, seed: int, deadline: float) -> None:
        """Every tile here is as right as the others."""

    def screen(
        self,
        problem: Problem,
        proved: Mapping[str, int],
        seconds: float,
        seed: int,
        deadline: float,
        thorough: bool = False,
    ) -> Screening:
        return screen_job(
            self.device, problem, proved, BenchWeights(seed), seconds, seed, resolve=self._resolve, thorough=thorough,
            clock=self.device.clock,
        )  # type: ignore[arg-type]  # fmt: skip

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
        return race_job(
            self.device, problem, incumbent, [challenger], proved, BenchWeights(seed), seconds, seed, fresh, rounds,
            resolve=self._resolve, most_rounds=most_rounds, clock=self.device.clock,
        )[0]  # type: ignore[arg-type]  # fmt: skip

    def close(self) -> None:
        return None


@dataclass(frozen=True)
class Outcome:
    """What one tune did: outcome of its decision, number of the tile it keeps, simulated seconds, the whole result."""

    outcome: str
    tile: int
    seconds: float
    result: TuneResult


def tune_once(noise: Noise, seed: int, gain: float = 1.0, folder: Path | None = None) -> Outcome:
    """One tune with the default budget over 64 tiles, of which number 1 is `gain` times as fast as the others.

    Tile 0 is the stock tile.
    """
    rng = np.random.default_rng((seed, 77))
    kernel = SimulatedKernel({1: 1 / gain}, noise.recording.seconds)
    device = SimulatedDevice(kernel, noise, rng)
    stand = SimulatedStand(device, kernel)
    with tempfile.TemporaryDirectory(dir=folder) as here:
        result = tune_on(
            stand, WORKLOAD, (3,), Budget(300.0, device.clock), Places.under(here).ready(), seed=seed,
            kernels=[kernel],  # type: ignore[list-item]
        )  # fmt: skip
    (row,) = result.rows
    return Outcome(row.decision.outcome, SimulatedTile.parse(row.tile).number, device.now, result)
