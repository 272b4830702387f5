"""compute-sanitizer's output, and what is said where it is not there. The tool itself runs on a card only."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from warptile.contracts import Problem, UnusableInput
from warptile.places import Places
from warptile.proof import sanitizer
from warptile.proof.sanitizer import Sanitized, read, sanitize

CASES = [("triton.gemm:a=1", Problem("Q4_K", 64, 256, 3)), ("triton.gemm:a=2", Problem("Q6_K", 64, 256, 3))]
CLEAN = """========= COMPUTE-SANITIZER
warptile-case begin 0
warptile-case done 0 right
warptile-case begin 1
warptile-case done 1 right
========= ERROR SUMMARY: 0 errors
"""
BROKEN = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 2 bytes
warptile-case begin 0
warptile-case done 0 right
warptile-case begin 1
========= Invalid __global__ read of size 16 bytes
=========     at gemm+0x1230
=========     by thread (96,0,0) in block (2,0,0)
=========     Access at 0x7f0000001000 is out of bounds
========= Invalid __global__ read of size 16 bytes
warptile-case done 1 right
========= ERROR SUMMARY: 3 errors
"""
RACES = """========= COMPUTE-SANITIZER
warptile-case begin 0
========= Error: Race reported between Write access at gemm+0x10 and Read access at gemm+0x40 [64 hazards]
warptile-case done 0 right
warptile-case begin 1
warptile-case done 1 bound: 3 of 192 elements exceed their bound
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def outcomes(tool: str, output: str) -> list[tuple[str, int]]:
    return [(each.outcome, each.errors) for each in read(tool, output, CASES, "ended")]


def test_what_a_tool_prints_is_about_the_tile_it_printed_it_for() -> None:
    assert outcomes("memcheck", CLEAN) == [("clean", 0), ("clean", 0)]
    assert outcomes("memcheck", BROKEN) == [("clean", 0), ("errors", 2)]
    assert outcomes("racecheck", RACES) == [("errors", 1), ("wrong", 0)]
    broken = read("memcheck", BROKEN, CASES, "")[1]
    assert broken.text() == "memcheck 2 errors: Invalid __global__ read of size 16 bytes"
    assert not broken.good


@pytest.mark.parametrize(
    "output",
    [
        "",
        CLEAN.replace("========= ERROR SUMMARY: 0 errors\n", ""),  # killed before its verdict
        "========= Error: Target application terminated before first instrumented API call\n",
    ],
)
def test_a_run_that_did_not_end_proves_nothing(output: str) -> None:
    found = read("memcheck", output, CASES, "the run ended with status 9")
    assert {each.outcome for each in found} == {"unknown"}
    assert all("status 9" in each.detail or "Target application" in each.detail for each in found)


def test_what_there_was_no_time_for_is_not_clean() -> None:
    cut = CLEAN.replace("warptile-case begin 1\nwarptile-case done 1 right\n", "warptile-out-of-time\n")
    first, second = read("racecheck", cut, CASES, "the run ended with status 0")
    assert first.good
    assert second.text() == "racecheck unknown: out of time"


def test_a_tool_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sanitizer, "PLACES", (str(tmp_path),))
    with pytest.raises(UnusableInput, match="compute-sanitizer, which is neither on PATH nor in"):
        sanitizer.sanitizer()


def test_the_tool_is_run_over_a_child_that_proves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stand-in that runs its command as the tool does; the child's device does not exist, so nothing is proved."""
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(
        '#!/bin/sh\nwhile [ "$1" != -c ]; do last=$1; shift; done\n"$last" "$@"\necho "= ERROR SUMMARY: 0"\n'
    )
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sanitizer, "PLACES", (str(tmp_path),))
    monkeypatch.setenv("PATH", str(tmp_path) + ":/usr/bin:/bin")
    found = sanitize("memcheck", "nothing:0", CASES, Places.under(tmp_path), 0, 60.0)
    assert [type(each) for each in found] == [Sanitized, Sanitized]
    assert {each.outcome for each in found} == {"unknown"}
    assert "no known prefix" in found[0].detail or "ERROR SUMMARY" in found[0].detail
