"""A trace must name every matmul, once a layer, and add up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warptile.cli import run
from warptile.places import Places

pytest.importorskip("torch")
pytest.importorskip("transformers")
from support.tiny_models import write_tiny


@pytest.mark.filterwarnings("ignore::warptile.routing.UntunedWarning")
def test_a_vulkan_trace_names_every_matmul_and_joins_another(
    tmp_path: Path, software_device: str, places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_tiny(tmp_path / "model.gguf", "llama", layers=1, tied=True)
    folders = ["--state", str(places.state), "--cache", str(places.cache)]
    words = ["trace", str(model), "--device", software_device, "-p", "9", *folders]
    other = tmp_path / "other.csv"
    other.write_text("Duration (ns),Name\n5000,mul_mat_q\n7000,flash_attn\n")
    assert run([*words, "--json", "--against", str(other)]) == 0
    found = json.loads(capsys.readouterr().out)
    for phase, m in (("prefill", 9), ("decode", 1)):
        matmuls = [s for s in found["spans"] if s["phase"] == phase and s["matmul"] and s["floor_seconds"]]
        assert sorted(s["matmul"] for s in matmuls) == sorted(
            f"Q8_0 n={n} k={k} m={tokens}"
            for n, k, tokens in [*([(64, 64, m), (32, 64, m), (96, 64, m)] * 2), (64, 96, m), (320, 64, 1)]
        )
        assert {s["layer"] for s in matmuls} >= {"model.layers.0.self_attn.q_proj", "lm_head"}
        assert all(s["seconds"] > 0 for s in matmuls)
        assert any(s["where"] == "host" and s["layer"].endswith("layernorm") for s in found["spans"])
    pairs = {pair["kind"]: pair for pair in found["against"]["pairs"]}
    ours = sum(s["seconds"] for s in found["spans"] if s["matmul"])
    assert pairs["quantized matmul"]["theirs"] == pytest.approx(5e-6)
    assert pairs["quantized matmul"]["ours"] == pytest.approx(ours)
    assert "there: " in found["gap"]
    assert run([*words, "--against", str(tmp_path / "none.json")]) == 2


@pytest.mark.filterwarnings("ignore::warptile.routing.UntunedWarning")
def test_a_vulkan_trace_holds_the_experts(
    tmp_path: Path, software_device: str, places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_tiny(tmp_path / "model.gguf", "qwen3moe", layers=1, tied=True)
    folders = ["--state", str(places.state), "--cache", str(places.cache)]
    assert run(["trace", str(model), "--device", software_device, "-p", "5", "--json", *folders]) == 0
    spans = json.loads(capsys.readouterr().out)["spans"]
    experts = [s for s in spans if s["phase"] == "decode" and ".experts." in s["layer"] and s["floor_seconds"]]
    assert {s["layer"].rpartition(".")[2] for s in experts} == {"gate_proj", "up_proj", "down_proj"}
    assert all(s["seconds"] > 0 and "experts" in s["matmul"] for s in experts)
