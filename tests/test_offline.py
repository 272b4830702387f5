"""`warptile check --compile`: real compilations for cards that are not here, in a process of its own, since the other
tests have Triton in its interpreter."""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from warptile.cli import run

# What serves Q4_K and Q6_K without a measurement, at a decode's and a prefill's number of tokens.
SERVED = """
import json, sys
from pathlib import Path
from warptile import devices, kernels, offline
from warptile.contracts import Problem
from warptile.search import rank
out = []
for name, m in (("Q4_K", 16), ("Q6_K", 128)):
    problem, limits = Problem(name, 4096, 4096, m, "fp16", "fp16"), devices.compile_only(sys.argv[1])
    best = next(
        c
        for c in rank(problem, limits, kernels.for_runtime("triton"))
        if not kernels.by_name(c.kernel).arithmetic(c.tile, problem).quantizes_activations
    )
    tiles = [(kernels.by_name(best.kernel), best.tile, "served")]
    out.append(offline.compile_tiles(problem, limits, tiles, Path(sys.argv[2])).to_json())
print(json.dumps(out))
"""
CLI = "import sys; from warptile.cli import run; sys.exit(run(sys.argv[1:]))"


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280, check=False)


def checked(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    folders = ("--cache", str(tmp_path / "c"), "--state", str(tmp_path / "s"))
    done = python(CLI, "check", "--compile", "--json", *arguments, *folders)
    assert done.returncode in (0, 1), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, document


@pytest.mark.parametrize("card", ["rx-9060-xt", "rtx-4070", "rtx-3060", "h200"])
def test_what_is_served_unmeasured_does_not_spill_in_its_loop(tmp_path: Path, card: str) -> None:
    pytest.importorskip("triton")
    done = python(SERVED, card, str(tmp_path))
    assert done.returncode == 0, done.stderr
    for report in json.loads(done.stdout):
        (tile,) = report["tiles"]
        assert tile["good"], tile
        assert tile["builds"], tile
        for build in tile["builds"]:
            assert build["code"]["loops"] > 0 or "dequantize" in build["function"]
            assert 16 < build["code"]["registers"] <= 512


@pytest.mark.parametrize(("card", "name"), [("gfx1100", "PTQ1_0"), ("rtx-3060", "Q4_K")])
def test_the_stock_and_best_priced_tiles_for_many_tokens_do_not_spill(tmp_path: Path, card: str, name: str) -> None:
    """64 rows by 128 tokens over four warps spill on both: a warp then holds 128 columns of x for a whole step."""
    pytest.importorskip("triton")
    code, document = checked(tmp_path, "--kernel", "gemm", "--device", card, "--format", name, "--m", "128")
    assert code == 0, document["tiles"]
    assert [t["origin"] for t in document["tiles"]] == ["stock", "least price"]


@pytest.mark.parametrize(("card", "name"), [("gfx1200", "Q4_K"), ("sm_89", "Q6_K")])
def test_the_stock_and_best_priced_int8_tiles_do_not_spill_in_their_loops(tmp_path: Path, card: str, name: str) -> None:
    pytest.importorskip("triton")
    code, document = checked(tmp_path, "--kernel", "gemm_int8", "--device", card, "--format", name, "--m", "64")
    assert code == 0, document["tiles"]
    assert [t["origin"] for t in document["tiles"]] == ["stock", "least price"]
    for tile in document["tiles"]:
        quantize, product = tile["builds"]
        assert quantize["code"]["matrix"] == 0
        assert product["code"]["matrix"] > 0


def test_a_tile_that_spills_in_its_loop_is_told_and_exits_1(tmp_path: Path) -> None:
    """128 x 128 sums over four warps are 128 a thread: with the decoded weights, more than 255 registers."""
    pytest.importorskip("triton")
    tile = "triton.gemm:tile_n=128,tile_m=128,tile_k=128,stages=2"
    code, document = checked(tmp_path, "--tile", tile, "--device", "sm_86", "--m", "128")
    assert code == 1
    (build,) = document["tiles"][0]["builds"]
    assert build["spills_in_loop"]
    assert build["code"]["registers"] == 255
    assert build["code"]["spill_bytes"] > 0
    assert "seconds" not in build["code"]


def test_a_tile_that_breaks_a_rule_is_not_compiled(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    code, document = checked(tmp_path, "--tile", "triton.gemm:tile_n=64,tile_m=64,tile_k=64", "--device", "gfx942")
    assert code == 1
    assert document["tiles"][0]["broken"]
    assert document["tiles"][0]["builds"] == []


def refused(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["check", "--compile", *arguments]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    return err


def test_without_triton_the_extra_is_named(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, globals: Mapping[str, Any] | None = None, *rest: Any) -> Any:
        if name == "triton" or name.startswith("triton."):
            raise ImportError(name)
        return real(name, globals, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "pip install 'warptile[torch]'" in refused(capfd, "--device", "h200")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--device", "mali-g610"), "no CUDA or ROCm compiler"),
        (("--device", "sm_37"), "sm_37"),
        (("--device", "h200", "--format", "Q9_Z"), "Q9_Z"),
        (("--device", "h200", "--kernel", "mul_mm"), "mul_mm"),
    ],
)
def test_what_cannot_be_compiled_is_one_line(
    capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    pytest.importorskip("triton")
    err = refused(capfd, *arguments)
    assert said in err or "TRITON_INTERPRET" in err
    assert len([line for line in err.splitlines() if line.startswith("warptile: ")]) == 1
