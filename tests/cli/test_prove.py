"""`warptile prove` says what it reached, what it could not, and how to repeat what was wrong."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.support.models import smollm2
from warptile.cli import run
from warptile.cli.prove_view import Proved, again, document, summary
from warptile.contracts import FirstWrong, Problem, Verdict
from warptile.kernels import by_name

TILE = "vulkan.mul_mm_direct:lanes=8,thread_n=4,thread_m=4"
P = Problem("Q4_1", 64, 96, 5)
RIGHT = Verdict(True, ("bound",), shapes=((1, 2, 32), (5, 64, 96)), seeds=(7,))
WRONG = Verdict(
    False, ("bound",), "bound", "3 of 9 elements", FirstWrong(1, 2, 3.0, 4.0, 0.5), ((1, 2, 32),), seeds=(7,)
)


def test_the_end_names_kernels_that_nothing_was_proved_of_and_tools_that_are_missing() -> None:
    results = [Proved(TILE, P, True, "", RIGHT), Proved(TILE, P, False, "bound: 3 of 9", WRONG)]
    asked = [by_name("vulkan.mul_mm_direct"), by_name("vulkan.mul_mm_coop")]
    text = "\n".join(each.plain for each in summary(results, asked, ["compute-sanitizer"]))
    assert "vulkan.mul_mm_direct: 1 tiles, 1 formats, 3 shapes" in text
    assert "not reached, no valid tile here: vulkan.mul_mm_coop" in text
    assert "not run: compute-sanitizer" in text
    assert text.endswith("1 right, 1 wrong")
    told = document(results, asked, ["compute-sanitizer"], "full", "vulkan:0")
    assert (told["right"], told["unreached"]) == (False, ["vulkan.mul_mm_coop"])


def test_a_real_tensor_is_proved_and_the_command_that_repeats_it_does(
    software_device: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = ["--state", str(tmp_path / "s"), "--cache", str(tmp_path / "c"), "--json"]
    command = ["prove", "--device", software_device, "--tile", TILE, "--weights", str(smollm2()), "--m", "3"]
    assert run([*command, "--tensor", "blk.0.attn_k.weight", *folders]) == 0
    (first,) = json.loads(capsys.readouterr().out)["proofs"]
    assert first["tensor"] == "blk.0.attn_k.weight"
    assert [9, 64, 576] in first["verdict"]["shapes"], "the rows of the tensor itself"
    assert run([*shlex.split(first["repeat"])[1:], *folders]) == 0
    (second,) = json.loads(capsys.readouterr().out)["proofs"]
    assert second == first


def test_words_that_repeat_a_proof_name_all_it_depends_on() -> None:
    grouped = Problem("Q4_K", 64, 256, 5, "fp16", "fp16", experts=4, top_k=2)
    words = again("cuda:0", "triton.gemm_id:a=1", grouped, "full", 9)
    for part in (
        "--format Q4_K",
        "--n 64",
        "--k 256",
        "--m 5",
        "--dtype fp16",
        "--experts 4",
        "--seed 9",
        "--level full",
    ):
        assert part in words


def test_a_tensor_without_a_model_and_a_model_without_it_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["prove", "--tensor", "blk.0.attn_k.weight"]) == 2
    assert "of which model" in capsys.readouterr().err
    assert run(["prove", "--weights", str(smollm2()), "--tensor", "no.such"]) == 2
    assert "no.such" in capsys.readouterr().err
