"""Arms on the fake kernel, and a runtime whose clock is simulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tests.fakes import FakeKernel, FakeRuntime, FakeTile
from warptile import formats
from warptile.contracts import Arm, DeviceWeights, Launch, Problem
from warptile.layouts import pack, upload
from warptile.proof.weights import random_blocks
from warptile.race import Bench, open_bench

PROBLEM = Problem("Q4_0", n=24, k=64, m=3)
BENCH = Bench(PROBLEM, None, None, (None,) * 3, 3000, 2000)  # type: ignore[arg-type]
KERNEL = FakeKernel()


def arm(number: int) -> Arm:
    return Arm(FakeTile(number=number).text(), PROBLEM)


def resolve(text: str) -> tuple[FakeKernel, FakeTile]:
    return KERNEL, FakeTile.parse(text)


def number_of(launch: Launch) -> int:
    tile: FakeTile = launch.scalars[5]  # type: ignore[assignment]
    return tile.number


def simulated(seconds: Sequence[float], noise: float = 0.02, seed: int = 0, cache_bytes: int = 4000) -> FakeRuntime:
    """A runtime where arm i takes seconds[i], log-normal around it."""
    rng = np.random.default_rng(seed)

    def taken(launch: Launch, now: float) -> float:
        return float(seconds[number_of(launch)] * np.exp(rng.normal(0, noise)))

    return FakeRuntime(KERNEL.programs(), taken, cache_bytes)


def weights_of(runtime: FakeRuntime) -> Callable[[], DeviceWeights]:
    fmt = formats.by_name(PROBLEM.format)
    blocks = random_blocks(fmt, PROBLEM.n * PROBLEM.k // 32, np.random.default_rng(0))
    packed = pack(fmt, blocks, PROBLEM.n, PROBLEM.k)
    return lambda: upload(runtime, packed)


def bench(runtime: FakeRuntime, memory_bytes: int = 1 << 20) -> Bench:
    return open_bench(runtime, PROBLEM, weights_of(runtime), memory_bytes, seed=1)


def ids(runtime: FakeRuntime, arms: Sequence[Arm]) -> dict[str, int]:
    return {a.tile: runtime.compile(KERNEL.source(resolve(a.tile)[1], PROBLEM, runtime.limits())).id for a in arms}
