"""Register operands of a running wgmma under an assembler that may overwrite them."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from warptile.runtimes.triton.assembler import own_assembler
from warptile.runtimes.triton.hazards import hazards_of, register_wgmma, version_of

ACCUMULATORS = "{%f1,%f2,%f3,%f4}"
REGISTER_A = f"""
\twgmma.fence.sync.aligned;
\twgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {ACCUMULATORS}, {{%r1, %r2, %r3, %r4}}, %rd5, p, 1, 1, 0;
\twgmma.commit_group.sync.aligned;
"""
SHARED_A = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {ACCUMULATORS}, %rd4, %rd5, p, 1, 1, 0, 0;"
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %f1, %f2 }, { %r1, %r2 }, { %r3 }, { %f1, %f2 };"


def kernel(ptx: str) -> SimpleNamespace:
    return SimpleNamespace(asm={"ptx": ptx})


@pytest.mark.parametrize(
    ("ptx", "found"), [(REGISTER_A, True), (SHARED_A, False), (MMA, False), (MMA + REGISTER_A, True)]
)
def test_only_register_operands_of_wgmma_count(ptx: str, found: bool) -> None:
    assert register_wgmma(ptx) == found


@pytest.mark.parametrize(
    ("ptxas", "named"), [("12.8.93", True), ("13.2.7", True), ("13.3.33", False), ("14.0", False), ("", True)]
)
def test_the_assemblers_version_decides(ptxas: str, named: bool) -> None:
    found = hazards_of([kernel(SHARED_A), kernel(REGISTER_A)], ptxas)
    assert bool(found) == named
    assert all("before 13.3" in line and (ptxas or "unknown") in line for line in found)
    assert hazards_of([kernel(SHARED_A)], ptxas) == ()
    assert hazards_of([SimpleNamespace(asm={"amdgcn": "v_wmma"})], ptxas) == ()


def test_versions_are_compared_as_numbers() -> None:
    assert version_of("13.10.1") > version_of("13.3") > version_of("12.9.86")
    assert version_of("none") == ()
    assert version_of("Build cuda_13.4.r13.4/compiler.36424714_0") == (13, 4)


def test_the_assembler_that_torch_compile_names_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """After one torch.compile in a process, Triton would assemble with torch's ptxas what was measured with its own."""
    torch = pytest.importorskip("torch")
    theirs = str(Path(torch.__file__).parent / "_inductor" / "bin" / "ptxas")
    for named, seen in ((theirs, None), ("/opt/ptxas-13.3", "/opt/ptxas-13.3")):
        monkeypatch.setenv("TRITON_PTXAS_PATH", named)
        with own_assembler():
            assert os.environ.get("TRITON_PTXAS_PATH") == seen
        assert os.environ["TRITON_PTXAS_PATH"] == named
