"""Where no exact matmul was measured, a tuned kernel's pipeline serves by (m, n), before any price."""

from dataclasses import replace
from pathlib import Path

from warptile import devices, formats, kernels
from warptile.contracts import Identity, Problem
from warptile.proof.version import PROOF_VERSION
from warptile.routing import route
from warptile.tables import Pipeline, PipelineKey, Pipelines, Point, Table, Thresholds, Validity

HERE = Identity(device="llvmpipe", driver="22.3.6", compiler="glslang 13", runtime="vulkan")
LIMITS = devices.by_name("lavapipe")


def table(folder: Path, driver: str = HERE.driver) -> tuple[Table, str, str]:
    kernel = kernels.by_name("mul_mm")
    problem = Problem("Q4_1", 1024, 1024, 128)
    valid = [t.text() for t in kernel.space(problem, LIMITS) if not kernel.broken_rules(t, problem, LIMITS)]
    key = PipelineKey.of("vulkan.mul_mm", problem, formats.by_name("Q4_1").layout.name)
    made, held = Table.load(folder, HERE), Pipelines(key, Thresholds(16, 16, 64, 64))
    for size, m, tile in (("small", 16, valid[0]), ("large", 256, valid[-1])):
        validity = Validity(driver, HERE.compiler, "aa", PROOF_VERSION)
        point = Point(m, tile, tile, 1e-3, 1e-3, 1.0, 1.0, 1.0, 0.0, "reject", "", validity)
        held = held.with_pipeline(Pipeline(size, 1024, 1024, point))
    made.put_pipelines(held)
    return made, valid[0], valid[-1]


def test_a_pipeline_serves_by_its_thresholds(tmp_path: Path) -> None:
    made, small, large = table(tmp_path)
    problem = Problem("Q4_1", 512, 2048, 8)
    for m, tile, size in ((8, small, "small"), (200, large, "large")):
        found = route(replace(problem, m=m), [made], LIMITS, lambda *_: "")
        assert (found.tile.text(), found.status) == (tile, "untuned")
        assert f"{size} pipeline of vulkan.mul_mm" in found.why


def test_a_size_without_a_pipeline_and_another_format_are_priced(tmp_path: Path) -> None:
    made, _, _ = table(tmp_path)
    for problem in (Problem("Q4_1", 512, 2048, 40), Problem("Q4_0", 512, 2048, 8)):
        found = route(problem, [made], LIMITS, lambda *_: "")
        assert "pipeline" not in found.why


def test_pipelines_of_another_driver_are_stale(tmp_path: Path) -> None:
    made, _, _ = table(tmp_path, driver="old")
    assert route(Problem("Q4_1", 512, 2048, 8), [made], LIMITS, lambda *_: "").status == "stale"


def test_a_winner_of_another_m_serves_only_where_the_paper_does_not_speak_against_it(tmp_path: Path) -> None:
    card, limits = Identity("NVIDIA H200", "580", "triton", "cuda"), devices.by_name("h200", "cuda")
    problem, layout = Problem("Q4_K", 4096, 14336, 512, "fp16", "fp16"), formats.by_name("Q4_K").layout.name
    # 128 tokens a program and k whole: 32 programs for 132 units at 128 tokens, 128 at 512.
    tile = kernels.by_name("triton.gemm_wgmma").stock(problem, limits)
    assert tile is not None
    made = Table.load(tmp_path, card)
    validity = Validity(card.driver, card.compiler, "aa", PROOF_VERSION)
    made.put(problem, layout, Point(512, tile.text(), tile.text(), 1e-4, 1e-4, 1, 1, 1, 0, "reject", "", validity))
    near, far = (route(replace(problem, m=m), [made], limits, lambda *_: "aa") for m in (700, 128))
    assert (near.tile.text(), near.status) == (tile.text(), "untuned")
    assert far.tile.text() != tile.text()
    assert "times the cheapest tile" in far.why
