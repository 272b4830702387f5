"""Vulkan's validation layer over proofs: found where loaders look, never believed where it was not active."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warptile.contracts import Problem, UnusableInput
from warptile.places import Places
from warptile.proof import layers
from warptile.proof.layers import LAYER, find_layer, read_layer, validate

P = Problem("Q4_0", 64, 256, 33)
CASES = [("vulkan.a:n=1", P), ("vulkan.b:n=2", P)]
ACTIVE = "    Current Enables: VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION.\n"
RAN = "warptile-case begin 0\n{0}warptile-case done 0 right\nwarptile-case begin 1\n{1}warptile-case done 1 right\n"
HAZARD = "SYNC-HAZARD-READ-AFTER-WRITE(ERROR): Validation Error: vkCmdDispatch: Hazard READ_AFTER_WRITE for VkBuffer\n"


def outcomes(output: str) -> list[tuple[str, int]]:
    return [(each.outcome, each.errors) for each in read_layer("synchronization", output, CASES, "ended")]


def test_an_error_is_of_the_tile_that_ran_then() -> None:
    assert outcomes(ACTIVE + RAN.format("", "")) == [("clean", 0), ("clean", 0)]
    assert outcomes(ACTIVE + RAN.format("", HAZARD + HAZARD)) == [("clean", 0), ("errors", 2)]
    found = read_layer("synchronization", ACTIVE + RAN.format(HAZARD, ""), CASES, "ended")[0]
    assert "READ_AFTER_WRITE" in found.detail


def test_a_layer_that_did_not_say_it_checks_proves_nothing() -> None:
    """A loader that finds no layer runs the child without one, and everything is in order."""
    assert outcomes(RAN.format("", "")) == [("unknown", 0), ("unknown", 0)]
    other = ACTIVE.replace("SYNCHRONIZATION_VALIDATION", "GPU_ASSISTED")
    assert outcomes(other + RAN.format("", "")) == [("unknown", 0), ("unknown", 0)]
    assert "did not say" in read_layer("synchronization", other, CASES, "ended")[0].detail


def test_a_tile_that_did_not_end_is_unknown() -> None:
    assert outcomes(ACTIVE + "warptile-case begin 0\nwarptile-case done 0 right\n")[1] == ("unknown", 0)


def test_the_manifest_is_found_where_the_loader_looks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(layers, "_FOLDERS", (str(tmp_path / "usual"),))
    monkeypatch.setenv("VK_LAYER_PATH", str(tmp_path / "named"))
    assert find_layer() is None
    with pytest.raises(UnusableInput, match=LAYER):
        validate("synchronization", "vulkan:0", CASES, Places.under(tmp_path), 0, 1.0)
    folder = tmp_path / "usual" / "explicit_layer.d"
    folder.mkdir(parents=True)
    (folder / "broken.json").write_text("{")
    (folder / "other.json").write_text(json.dumps({"layer": {"name": "VK_LAYER_other"}}))
    assert find_layer() is None
    manifest = folder / "validation.json"
    manifest.write_text(json.dumps({"layer": {"name": LAYER}}))
    assert find_layer() == manifest
