"""The proof under Vulkan's validation layer: barriers between launches, and accesses of descriptors' ranges.

As `sanitizer` does for CUDA, one child process a tool proves all tiles, and what the layer prints between two of the
child's markers is about the tile between them. The layer must say that it is active with what was asked for: a loader
that does not find it runs without it in silence.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from warptile.contracts import Problem, UnusableInput
from warptile.places import Places
from warptile.proof.sanitizer import CHILD_SHARE, Sanitized, read, run_child

LAYER = "VK_LAYER_KHRONOS_validation"
TOOLS: Mapping[str, tuple[str, str]] = {
    "synchronization": ("VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT", "validate_sync"),
    "gpu-assisted": ("VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT", "gpuav_enable"),
}
"""Hazards between launches on the same bytes; accesses outside a descriptor's range. With the setting's two names: of
layers up to 1.3.2xx, and after."""

_FOLDERS = ("/etc/vulkan", "/usr/local/share/vulkan", "/usr/share/vulkan", "~/.local/share/vulkan")
_MESSAGE = re.compile(r"^.*(?:Validation Error|SYNC-HAZARD|VUID-|Validation Warning).*")
_ACTIVE = re.compile(r"Current Enables:.*")


def find_layer() -> Path | None:
    """The layer's manifest on VK_LAYER_PATH or in the loader's usual folders; None where it is not installed."""
    named = [Path(each) for each in os.environ.get("VK_LAYER_PATH", "").split(os.pathsep) if each]
    usual = [Path(each).expanduser() / "explicit_layer.d" for each in _FOLDERS]
    for folder in (*named, *usual):
        for manifest in sorted(folder.glob("*.json")):
            try:
                value = json.loads(manifest.read_text())
                layers = [value["layer"]] if "layer" in value else value["layers"]
                if any(layer["name"] == LAYER for layer in layers):
                    return manifest
            except (OSError, ValueError, KeyError, TypeError):
                continue
    return None


def validate(
    tool: str, device: str, cases: Sequence[tuple[str, Problem]], places: Places, seed: int, seconds: float
) -> list[Sanitized]:
    """Prove (tile, problem) pairs on a Vulkan device under the layer, in a process of its own, at most `seconds` long.

    tool: of `TOOLS`. Raises UnusableInput where the layer is not installed or the process cannot be started.
    """
    if find_layer() is None:
        raise UnusableInput(f"{LAYER} is not installed")
    request = {
        "device": device,
        "cache": str(places.cache),
        "state": str(places.state),
        "seed": seed,
        "seconds": seconds * CHILD_SHARE,
        "cases": [{"tile": tile, "problem": asdict(problem)} for tile, problem in cases],
    }
    command = [sys.executable, "-c", "from warptile.proof.sanitizer import main; main()", json.dumps(request)]
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "vk_layer_settings.txt"
        settings.write_text(_settings(tool))
        environment = {
            "VK_INSTANCE_LAYERS": LAYER,
            "VK_LAYER_SETTINGS_PATH": str(settings),
        }
        output, ended = run_child(command, environment, seconds)
    return read_layer(tool, output, cases, ended)


def read_layer(tool: str, output: str, cases: Sequence[tuple[str, Problem]], ended: str) -> list[Sanitized]:
    """What the layer's output says of each case: "unknown" for all where the layer was not active with the tool."""
    enabled = TOOLS[tool][0].removesuffix("_EXT")
    active = any(enabled in found for found in _ACTIVE.findall(output))
    why = "" if active else f"{LAYER} did not say that it checks {tool}; {ended}"
    return read(tool, output, cases, why or ended, _MESSAGE, active)


def _settings(tool: str) -> str:
    old, new = TOOLS[tool]
    return "".join(
        f"khronos_validation.{name} = {value}\n"
        for name, value in (
            ("debug_action", "VK_DBG_LAYER_ACTION_LOG_MSG"),
            ("report_flags", "error,info"),
            ("log_filename", "stdout"),
            ("duplicate_message_limit", "3"),
            ("enables", old),
            (new, "true"),
        )
    )
