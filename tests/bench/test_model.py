"""The rows of a whole model, and llama-bench's beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warptile.bench.llama_bench import read_llama_bench, run_llama_bench
from warptile.bench.model import Tests as Cases
from warptile.bench.model import bench_model
from warptile.cli import run
from warptile.contracts import UnusableInput
from warptile.places import Places

pytest.importorskip("torch")
pytest.importorskip("transformers")
from support.tiny_models import write_tiny


@pytest.mark.filterwarnings("ignore::warptile.routing.UntunedWarning")
def test_rows_of_a_model_beside_another_program(
    tmp_path: Path, software_device: str, places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_tiny(tmp_path / "model.gguf", "llama")
    peer = tmp_path / "llama-bench"
    rows = [
        {"n_prompt": p, "n_gen": n, "n_depth": d, "samples_ts": [10.0, 12.0], "backends": "CPU", "cpu_info": "a"}
        for d in (0, 6)
        for p, n in ((8, 0), (0, 4))
    ]
    peer.write_text(f"#!/bin/sh\necho '{json.dumps(rows)}'\n")
    peer.chmod(0o755)
    words = ["bench", "model", str(model), "--device", software_device, "-p", "8", "-n", "4", "-d", "0,6,512"]
    folders = ["--state", str(places.state), "--cache", str(places.cache)]
    assert run([*words, "-r", "2", "--cpu", "--versus", str(peer), "--json", *folders]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["test"], row["depth"], len(row["samples"])) for row in found["rows"]] == [
        ("pp8", 0, 2),
        ("tg4", 0, 2),
        ("pp8", 6, 2),
        ("tg4", 6, 2),
    ]
    assert all(0 < row["matmul_share"] < 1 and row["mean"] > 0 for row in found["rows"])
    assert [row["test"] for row in found["reference"]] == ["pp8", "tg4", "pp8", "tg4"]
    assert [row["mean"] for row in found["versus"]["rows"]] == [11.0] * 4
    assert [label for label, _ in found["left_out"]] == ["pp8 @ d512", "tg4 @ d512"]
    assert found["load_seconds"] > 0
    assert found["first_token_seconds"] > 0


@pytest.mark.filterwarnings("ignore::warptile.routing.UntunedWarning")
def test_decoding_alone_is_measured(tmp_path: Path, software_device: str, places: Places) -> None:
    """As llama-bench's -p 0: the first token then follows a prompt of one."""
    model = write_tiny(tmp_path / "model.gguf", "llama", layers=1)
    found = bench_model(model, software_device, Cases((0,), (2,), (0,), 1), places=places)
    assert [row.label for row in found.rows] == ["tg2"]
    assert found.prompt == 1


def test_another_programs_trouble_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="not llama-bench's JSON"):
        read_llama_bench("[{}]", "peer")
    for rates in ("[]", "[0.0]"):
        with pytest.raises(UnusableInput, match="not llama-bench's JSON"):
            read_llama_bench('[{"n_prompt": 0, "n_gen": 2, "samples_ts": ' + rates + "}]", "peer")
    broken = tmp_path / "llama-bench"
    broken.write_text("#!/bin/sh\necho no model >&2\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(UnusableInput, match="exit code 3: no model"):
        run_llama_bench(broken, tmp_path / "model.gguf", Cases())


@pytest.mark.filterwarnings("ignore::warptile.routing.UntunedWarning")
def test_own_rows_outlive_another_programs_trouble(
    tmp_path: Path, software_device: str, places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise minutes of measuring are lost to a llama-bench that cannot read the file."""
    model = write_tiny(tmp_path / "model.gguf", "llama", layers=1)
    broken = tmp_path / "llama-bench"
    broken.write_text("#!/bin/sh\necho no model >&2\nexit 3\n")
    broken.chmod(0o755)
    words = ["bench", "model", str(model), "--device", software_device, "-p", "8", "-n", "0", "-r", "1"]
    folders = ["--state", str(places.state), "--cache", str(places.cache)]
    assert run([*words, "--versus", str(broken), "--json", *folders]) == 2
    shown = capsys.readouterr()
    assert [row["test"] for row in json.loads(shown.out)["rows"]] == ["pp8"]
    assert "exit code 3: no model" in shown.err.splitlines()[-1]


def test_what_cannot_be_measured_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "model", str(tmp_path / "m.gguf"), "-p", "0", "-n", "0"]) == 2
    assert run(["bench", "model", str(tmp_path / "m.gguf"), "-d", "x"]) == 2
    assert run(["trace", str(tmp_path / "m.gguf"), "--phase", "decode"]) == 2
    assert run(["bench", "model", str(tmp_path / "m.gguf"), "--versus", str(tmp_path / "none")]) == 2
    assert "no such file" in capsys.readouterr().err.splitlines()[-1]
