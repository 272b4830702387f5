"""Real models' tensors through the proof: SmolLM2's types at level full, Gemma's where the file is here.

All of a model's matmuls: `warptile prove --weights MODEL.gguf --level full` (docs/proof.md).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.models import smollm2
from warptile import kernels, workloads
from warptile.contracts import Problem, Runtime, WorkloadRow
from warptile.proof import ReferenceCache, prove
from warptile.proof.jobs import RealWeights, real_blocks

TILE = "vulkan.mul_mm_direct:lanes=8,thread_n=1,thread_m=1"


def of_each_format(path: Path) -> dict[str, WorkloadRow]:
    """The first matmul of each format, by format."""
    rows = workloads.from_gguf(path).rows
    return {row.format: row for row in reversed(rows)}


def proved(device: Runtime, path: Path, row: WorkloadRow, level: str) -> tuple[bool, str]:
    kernel, tile = kernels.parse_tile(TILE)
    problem = Problem(row.format, row.n, row.k, 1)
    blocks = real_blocks(RealWeights(str(path), row.tensors[0], rows=24), problem)
    verdict = prove(device, kernel, tile, problem, level, blocks=blocks, cache=ReferenceCache())
    assert any(n == len(blocks) and k == row.k for _, n, k in verdict.shapes) or not verdict.right
    return verdict.right, f"{verdict.failed}: {verdict.detail}"


def test_smollm2_has_the_types_that_are_proved_here() -> None:
    assert set(of_each_format(smollm2())) == {"Q4_1", "Q8_0"}


@pytest.mark.parametrize("name", ["Q4_1"])
def test_smollm2_through_full(device: Runtime, name: str) -> None:
    right, why = proved(device, smollm2(), of_each_format(smollm2())[name], "full")
    assert right, why


def test_smollm2s_output_weight(device: Runtime) -> None:
    right, why = proved(device, smollm2(), of_each_format(smollm2())["Q8_0"], "quick")
    assert right, why


def test_every_type_of_gemma(device: Runtime) -> None:
    """WARPTILE_GEMMA names the file; it is read at test time and never shipped."""
    path = Path(os.environ.get("WARPTILE_GEMMA", "gemma.gguf"))
    if not path.is_file():
        pytest.skip(f"no Gemma here: set WARPTILE_GEMMA to a GGUF file ({path} is none)")
    for name, row in of_each_format(path).items():
        right, why = proved(device, path, row, "quick")
        assert right, f"{name}: {why}"
