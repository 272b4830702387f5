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
def test_a_vulkan_trace_joins_with_itself(
    tmp_path: Path, software_device: str, places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_tiny(tmp_path / "model.gguf", "llama", layers=1, tied=True)
    folders = ["--state", str(places.state), "--cache", str(places.cache)]
    words = ["trace", str(model), "--device", software_device, "-p", "9", *folders]
    assert run([*words, "--json"]) == 0
    text = capsys.readouterr().out
    found = json.loads(text)
    for phase, m in (("prefill", 9), ("decode", 1)):
        matmuls = [s for s in found["spans"] if s["phase"] == phase and s["matmul"] and s["floor_seconds"]]
        assert sorted(s["matmul"] for s in matmuls) == sorted(
            f"Q8_0 n={n} k={k} m={tokens}"
            for n, k, tokens in [*([(64, 64, m), (32, 64, m), (96, 64, m)] * 2), (64, 96, m), (320, 64, 1)]
        )
        assert {s["layer"] for s in matmuls} >= {"model.layers.0.self_attn.q_proj", "lm_head"}
        assert all(s["seconds"] > 0 for s in matmuls)
        assert any(s["where"] == "host" and s["layer"].endswith("layernorm") for s in found["spans"])
    (tmp_path / "own.json").write_text(text)
    assert run([*words, "--against", str(tmp_path / "own.json")]) == 0
    shown = capsys.readouterr().out
    assert "against a warptile trace" in shown
    assert "quantized matmul" in shown
    assert run([*words, "--against", str(tmp_path / "none.json")]) == 2
