"""Races on a real device, through its worker: what is proved is raced, a slow tile loses, and jobs keep one bench."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.models import smollm2
from warptile.contracts import Problem, Runtime, UnusableInput, Wrong
from warptile.places import Places
from warptile.proof.jobs import prove_job
from warptile.race import decide
from warptile.race.jobs import BenchWeights, bench_for, race_job, release_job, screen_job
from warptile.runtimes.worker import Worker

PROBLEM = Problem("Q4_1", n=576, k=576, m=64)
SLOW = "vulkan.mul_mm_direct:lanes=8,thread_n=1,thread_m=1"
FAST = "vulkan.mul_mm_direct:lanes=8,thread_n=4,thread_m=8,load_n=4"
WEIGHTS = BenchWeights(path=str(smollm2()), tensor="blk.0.attn_q.weight", copies_bytes=16 << 20)


@pytest.fixture(scope="module")
def worker(software_device: str, places: Places) -> Iterator[Worker]:
    with Worker(software_device, places) as found:
        yield found


@pytest.fixture(scope="module")
def proved(worker: Worker) -> dict[str, int]:
    verdicts = {tile: worker.run(prove_job, tile, PROBLEM) for tile in (SLOW, FAST)}
    assert all(v.right for v in verdicts.values())
    return {tile: v.binary for tile, v in verdicts.items()}


def test_a_slow_incumbent_is_screened_out_raced_and_beaten(worker: Worker, proved: dict[str, int]) -> None:
    screening = worker.run(screen_job, PROBLEM, proved, WEIGHTS, 5.0, 0)
    assert screening.survivors[0].arm.tile == FAST
    found = [
        worker.run(race_job, PROBLEM, SLOW, [FAST], proved, WEIGHTS, 10.0, seed, confirm)[0]
        for seed, confirm in ((1, False), (2, True))
    ]
    assert found[0].copies >= 16
    assert found[0].copies * 207360 <= found[0].rotated_bytes <= 16 << 20
    assert decide(*found).outcome == "accept"


def test_a_tile_that_was_not_proved_is_not_raced(worker: Worker, proved: dict[str, int]) -> None:
    with pytest.raises(Wrong, match="proved was"):
        worker.run(race_job, PROBLEM, SLOW, [FAST], proved | {FAST: 1}, WEIGHTS, 1.0, 0)


def test_a_tensor_of_another_shape_is_refused(worker: Worker, proved: dict[str, int]) -> None:
    other = BenchWeights(path=str(smollm2()), tensor="blk.0.ffn_gate.weight")
    with pytest.raises(UnusableInput, match="n=1536"):
        worker.run(race_job, PROBLEM, SLOW, [FAST], proved, other, 1.0, 0)


def test_one_bench_is_kept_and_replaced(device: Runtime) -> None:
    drawn = BenchWeights(seed=4, copies_bytes=1 << 20)
    first = bench_for(device, PROBLEM, drawn, fresh=False)
    assert bench_for(device, PROBLEM, drawn, fresh=False) is first
    anew = bench_for(device, PROBLEM, drawn, fresh=True)
    assert anew is not first
    with pytest.raises(ValueError, match="freed"):
        device.download(first.y, "f4", (1,))
    release_job(device)
    with pytest.raises(ValueError, match="freed"):
        device.download(anew.y, "f4", (1,))
