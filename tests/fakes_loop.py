"""A stand with no device: tiles whose speed and faults are known, on a clock that only the stand moves."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from warptile.contracts import (
    Arm,
    BrokenRule,
    CandidateRejected,
    Ceilings,
    Identity,
    Limits,
    Price,
    Problem,
    Race,
    Source,
    Tile,
    Timeout,
    Verdict,
    Workload,
    WorkloadRow,
    Wrong,
)
from warptile.places import Places
from warptile.proof.version import PROOF_VERSION
from warptile.race import Screened, Screening
from warptile.tuning.budget import Budget
from warptile.tuning.stand import Proof

IDENTITY = Identity(device="Fake One", driver="1.0", compiler="fakec 1", runtime="fake")
LIMITS = Limits(
    name="Fake One",
    runtime="fake",
    vendor="nobody",
    kind="software",
    subgroup=8,
    subgroup_sizes=(8,),
    shared_bytes=32768,
    shared_bytes_per_unit=0,
    max_workgroup=1024,
    max_grid=(65535, 65535, 65535),
    max_buffer_bytes=1 << 27,
    live=True,
)
WORKLOAD = Workload(
    "tiny",
    "tiny.toml",
    (
        WorkloadRow("Q4_1", 576, 576, "linear", ("a", "b"), 100),
        WorkloadRow("Q4_1", 1536, 576, "linear", ("c",), 100),
        WorkloadRow("Q8_0", 4096, 576, "output", ("out",), 100),
    ),
)


@dataclass(frozen=True)
class FakeTile(Tile):
    """width, depth: speed peaks at (width, depth) = (8, 4)."""

    kernel: ClassVar[str] = "fake.tile"
    width: int
    depth: int


class FakeKernel:
    """A kernel whose price is an honest but crude guess at `true_seconds`."""

    name = "fake.tile"
    runtime = "fake"
    tile_type: type[Tile] = FakeTile

    def __init__(self, version: str = "1", stock: FakeTile | None = None) -> None:
        self.version = version
        self._stock = stock if stock is not None else FakeTile(1, 1)

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        for width in (1, 2, 4, 8, 16, 32):
            for depth in (1, 2, 4, 8):
                yield FakeTile(width, depth)

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        return self._stock

    def broken_rules(self, tile: Any, problem: Problem, limits: Limits) -> list[BrokenRule]:
        return [BrokenRule("width <= n", f"{tile.width} > {problem.n}")] if tile.width > problem.n else []

    def price(self, tile: Any, problem: Problem, limits: Limits) -> Price:
        seconds = problem.flops / 1e9 / min(tile.width, 16)
        return Price(tile.width * tile.depth, 32, 0, 0, "unknown", 0, 1.0, 1, 1.0, seconds)

    def source(self, tile: Any, problem: Problem, limits: Limits) -> Source:
        return Source("fake", f"{self.version} {tile.text()}", (), 3, 0, 32)


def true_seconds(tile: str, problem: Problem) -> float:
    """Seconds of a tile: 1e9 FLOP/s at worst, 16 times that at (8, 4)."""
    one = FakeTile.parse(tile)
    off = abs(one.width.bit_length() - 4) + abs(one.depth.bit_length() - 3)
    return problem.flops / 1e9 / max(1.0, 16 - 3 * off)


@dataclass
class FakeStand:
    """Steps that take `step_seconds` of `now` each. faults: what a tile's proof raises; wrong: tiles that fail it;
    watched_wrong: tiles that only their instrumented builds find wrong.

    interrupt_at: the step that Ctrl-C interrupts. build: part of every artefact.
    proof_seconds: what a tile's proof takes; round_seconds: what a round of a race takes.
    unlucky: the tile that its first screening measures 1.24 times too slow. log: (step, tile or problem) in order.
    """

    limits: Limits = LIMITS
    identity: Identity = IDENTITY
    now: float = 0.0
    step_seconds: float = 1.0
    noise: float = 0.01
    factor: Mapping[str, float] = field(default_factory=dict)
    faults: Mapping[str, CandidateRejected] = field(default_factory=dict)
    race_faults: Mapping[str, CandidateRejected] = field(default_factory=dict)
    wrong: frozenset[str] = frozenset()
    watched_wrong: frozenset[str] = frozenset()
    interrupt_at: int | None = None
    build: str = "1"
    proof_seconds: Mapping[str, float] = field(default_factory=dict)
    round_seconds: float = 0.0
    unlucky: str = ""
    log: list[tuple[str, str]] = field(default_factory=list)
    compiled_ahead: list[str] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def describe(self) -> tuple[Limits, Identity]:
        return self.limits, self.identity

    def _step(self, name: str, what: str) -> None:
        if self.interrupt_at is not None and len(self.log) >= self.interrupt_at:
            raise KeyboardInterrupt
        self.log.append((name, what))
        self.now += self.step_seconds

    def ceilings(self) -> Ceilings:
        return Ceilings(1e10, 1e11, 1e-5)

    def ahead(self, wanted: Sequence[tuple[str, Problem]], deadline: float) -> int:
        self.compiled_ahead += [tile for tile, _ in wanted]
        return 1

    def prove(self, tile: str, problems: Sequence[Problem], seed: int, deadline: float) -> Proof:
        self._step("prove", tile)
        if self.proof_seconds.get(tile, 0.0) > deadline:
            raise Timeout(f"took longer than {deadline:g} s")
        if tile in self.faults:
            raise self.faults[tile]
        right = tile not in self.wrong
        verdict = Verdict(
            right=right, checks=("bound",), failed="" if right else "bound", binary=hash(tile) % 1000 + 1,
            version=PROOF_VERSION,
        )  # fmt: skip
        return Proof(verdict, f"artefact {self.build} of {tile}", 0.5)

    def seconds(self, tile: str, problem: Problem) -> float:
        return true_seconds(tile, problem) * self.factor.get(tile, 1.0)

    def watch(self, tile: str, problem: Problem, seed: int, deadline: float) -> None:
        if tile in self.watched_wrong:
            raise Wrong("outside: reads past w")

    def screen(
        self,
        problem: Problem,
        proved: Mapping[str, int],
        seconds: float,
        seed: int,
        deadline: float,
        thorough: bool = False,
    ) -> Screening:
        self._step("screen", problem.text())
        for tile in proved:
            if tile in self.race_faults:
                raise self.race_faults[tile]
        first = not any(what == f"unlucky on {problem.text()}" for _, what in self.log)
        if self.unlucky in proved and first:
            self.log.append(("", f"unlucky on {problem.text()}"))
        factor = {self.unlucky: 1.24} if first else {}
        arms = [Screened(Arm(t, problem), self.seconds(t, problem) * factor.get(t, 1.0), 3) for t in proved]
        arms.sort(key=lambda s: s.seconds)
        return Screening(tuple(arms[:4]), tuple(arms[4:]), ())

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
        self._step("race", f"{challenger} against {incumbent} on {problem.text()}")
        assert set(proved) == {incumbent, challenger}
        if challenger in self.race_faults:
            raise self.race_faults[challenger]
        wobble = random.Random(f"{seed} {challenger}")
        if self.round_seconds:
            rounds = min(rounds, int(seconds / self.round_seconds))
        slow, fast = self.seconds(incumbent, problem), self.seconds(challenger, problem)
        ratio = slow / fast * (1 + self.noise * wobble.uniform(-0.5, 0.5))
        return Race(
            Arm(incumbent, problem),
            Arm(challenger, problem),
            ratio,
            ratio * (1 - self.noise),
            ratio * (1 + self.noise),
            0.95,
            self.noise,
            slow,
            fast,
            rounds,
            copies=4,
            rotated_bytes=2,
            cache_bytes=1,
        )

    def close(self) -> None:
        self.log.append(("close", ""))


def places(folder: Path) -> Places:
    return Places.under(folder).ready()


def budget(stand: FakeStand, seconds: float = 300.0) -> Budget:
    return Budget(seconds, stand.clock)
