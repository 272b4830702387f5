"""What a card is asked for must be what was tuned."""

from __future__ import annotations

from pathlib import Path

from support.models import smollm2
from support.tiny_models import write_tiny

from warptile.workloads import from_gguf
from warptile.workloads.joined import as_served


def test_weights_of_one_input_are_one_matrix_on_a_card() -> None:
    parts = from_gguf(smollm2())
    found = as_served(parts, "cuda:0")
    assert [(r.format, r.n, r.k, r.times) for r in found.rows] == [
        ("Q4_1", 576, 1536, 30),
        ("Q4_1", 576, 576, 30),
        ("Q4_1", 960, 576, 30),
        ("Q4_1", 3072, 576, 30),
        ("Q8_0", 49152, 576, 1),
    ]
    assert sum(r.nbytes for r in found.rows) == sum(r.nbytes for r in parts.rows)
    assert sum(p.count for p in found.problems(7)) == 121
    assert as_served(parts, "vulkan:0") == parts


def test_an_architecture_that_is_not_loaded_is_asked_part_by_part(tmp_path: Path) -> None:
    parts = from_gguf(write_tiny(tmp_path / "model.gguf", "falcon"))
    assert as_served(parts, "cuda:0") == parts
