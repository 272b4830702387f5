"""An explanation must agree with the race it stands on, and say plainly where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes_loop import FakeKernel
from tests.record.test_matmuls import BEST, STOCK, tuned
from warptile import devices, kernels
from warptile.check import problem_of
from warptile.cli import run
from warptile.contracts import Ceilings, UnusableInput
from warptile.explain import explain, subject
from warptile.record import records_of


def test_the_race_the_roof_and_the_runner_up(tmp_path: Path) -> None:
    (device,) = records_of(tuned(tmp_path))
    record = next(m for m in device.matmuls if (m.problem.n, m.problem.m) == (1536, 128))
    found = explain("Fake One", record.problem, record, device.limits, device.ceilings, [FakeKernel()])  # type: ignore[list-item]
    assert found is not None
    assert (found.basis, found.tile, found.outcome, found.race) == ("measured", BEST, "accept", record.last_race)
    assert found.stock is not None
    assert found.stock.tile == STOCK
    assert found.ahead == pytest.approx(16 / 13, rel=0.05)
    assert found.place is not None
    assert 1 <= found.place.place <= found.place.valid <= found.place.considered
    # 2 * 128 * 1536 * 576 FLOP, Q4_1's 20 bytes a 32 weights, x and y fp32; the fake reaches 16 GFLOP/s of 100.
    assert found.roof is not None
    assert found.roof.moved_bytes == 1536 * 576 // 32 * 20 + 4 * 128 * (1536 + 576)
    assert found.roof.bound == "arithmetic"
    assert found.roof.share == pytest.approx(0.16, rel=0.05)


def test_without_a_race_the_price_speaks_and_says_so() -> None:
    limits = devices.by_name("h200", "cuda")
    problem = problem_of("Q4_K", 4096, 14336, 512, "fp16")
    found = explain("h200", problem, None, limits, None, kernels.for_runtime("cuda"))
    assert found is not None
    assert (found.basis, found.race, found.roof, found.ahead) == ("price", None, None, None)
    assert found.place is not None
    assert found.place.place == 1
    assert "nothing was raced" in found.reason


def test_one_token_is_bound_by_memory() -> None:
    problem = problem_of("Q4_K", 4096, 14336, 1, "fp16")
    limits = devices.by_name("h200", "cuda")
    found = explain("h200", problem, None, limits, Ceilings(4e12, 6e13, 1e-6), kernels.for_runtime("cuda"))
    assert found is not None
    assert found.roof is not None
    assert found.roof.bound == "memory"
    assert found.roof.floor_seconds == found.roof.moved_bytes / 4e12


def test_words_for_a_matmul() -> None:
    assert subject("q4_k  n=4096 k=14336 m=512", (1,)).problems == (problem_of("Q4_K", 4096, 14336, 512),)
    assert [p.m for p in subject("Q4_K n=4096 k=14336", (1, 8)).problems] == [1, 8]
    # As other verbs print them, so that a line can be copied from one command into the next.
    for text in ("Q4_K n=4096 k=14336 m=8 fp16", "Q4_K n=4096 k=14336 m=8 dtype=fp16"):
        found = subject(text, (1,))
        assert (found.problems, found.typed) == ((problem_of("Q4_K", 4096, 14336, 8, "fp16"),), True)
    for text in ("Q4_K n=4096", "Q4_K n=0 k=256 m=1", "Q99 n=1 k=1 m=1", "no such model", "Q4_K n=256 k=256 m=1 z=1"):
        with pytest.raises(UnusableInput):
            subject(text, (1,))


def test_the_verb_needs_no_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tuned(tmp_path)
    state = ["--state", str(tmp_path / "state")]
    assert run(["explain", "Q4_1 n=576 k=576 m=128", *state]) == 0
    text = capsys.readouterr().out
    assert "accept" in text
    assert "runner-up" in text
    assert run(["explain", "Q4_1 n=576 k=576", "--json", *state]) == 0
    found = json.loads(capsys.readouterr().out)["explanations"]
    assert [each["problem"]["m"] for each in found] == [16, 128]
    assert {each["basis"] for each in found} == {"measured"}
    assert run(["explain", "smollm2-135m", *state]) == 0
    assert "in full" in capsys.readouterr().out
    for words, line in (
        (["Q4_1 n=576 k=577 m=1"], "not a multiple of Q4_1's block"),
        (["Q4_1 n=576 k=576", "--device", "nothing"], "no data file of a card of that name"),
    ):
        assert run(["explain", *words, *state]) == 2
        assert line in capsys.readouterr().err
