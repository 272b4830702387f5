"""Whatever is wrong with the input: one line on stderr, exit code 2, nothing on stdout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warptile.cli import run

SHAPES = """
name = "tiny"
[[matmul]]
format = "Q4_1"
n = 64
k = 64
"""


def refused(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = run(arguments)
    out, err = capfd.readouterr()
    assert (code, out) == (2, "")
    lines = [line for line in err.splitlines() if not line.startswith("[")]
    assert len(lines) == 1, err
    assert lines[0].startswith("warptile: ")
    return lines[0]


@pytest.fixture
def shapes(tmp_path: Path) -> str:
    path = tmp_path / "tiny.toml"
    path.write_text(SHAPES)
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "command"),
        (("frobnicate",), "frobnicate"),
        (("tune",), "MODEL"),
        (("tune", "x.gguf", "--nope"), "--nope"),
        (("tune", "absent.gguf"), "absent.gguf"),
        (("tune", "smollm2-135m", "--m", "0"), "--m"),
        (("tune", "smollm2-135m", "--m", "1,,2"), "--m"),
        (("tune", "smollm2-135m", "--budget", "soon"), "budget"),
        (("tune", "smollm2-135m", "--budget", "0s"), "budget"),
        (("tune", "smollm2-135m", "--seed", "-1"), "--seed"),
        (("bench", "ops"), "SHAPES"),
        (("bench", "ops", "no-such-shapes"), "no-such-shapes"),
        (("check", "--tile", "1,2", "--kernel", "mul_mm", "--device", "mali-g610"), "missing"),
        (("check", "--tile", "1,2", "--device", "mali-g610"), "kernel"),
        (("check", "--tile", "mul_mm:x=1", "--device", "mali-g610"), "no field 'x'"),
        (("check", "--tile", "mul_mm:1", "--device", "geforce-256"), "geforce-256"),
        (("prove", "--level", "thorough"), "thorough"),
        (("prove", "--format", "Q9_Z"), "Q9_Z"),
        (("journal", "list", "--kind", "gossip"), "gossip"),
    ],
)
def test_one_line(capfd: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    assert said in refused(capfd, *arguments)


def test_a_model_that_is_none(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "[bold]x.gguf"
    path.write_bytes(b"GGUF\x03\x00")
    assert "[bold]x.gguf" in refused(capfd, "tune", str(path))


def test_no_such_device(capfd: pytest.CaptureFixture[str], tmp_path: Path, shapes: str) -> None:
    folders = ("--state", str(tmp_path / "s"), "--cache", str(tmp_path / "c"))
    assert "vulkan:99" in refused(capfd, "tune", shapes, "--device", "vulkan:99", *folders)


def test_a_folder_that_cannot_be_written(capfd: pytest.CaptureFixture[str], tmp_path: Path, shapes: str) -> None:
    (tmp_path / "file").write_text("")
    line = refused(capfd, "tune", shapes, "--state", str(tmp_path / "file" / "s"), "--cache", str(tmp_path / "c"))
    assert "cannot be written" in line


def test_a_newer_journal_and_a_corrupt_table(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, shapes: str, software_device: str
) -> None:
    folders = ("--state", str(tmp_path / "s"), "--cache", str(tmp_path / "c"), "--device", software_device)
    journal = tmp_path / "s" / "journal"
    journal.mkdir(parents=True)
    line = journal / "20260101T000000Z-00000000.jsonl"
    line.write_text(json.dumps({"schema": 99, "kind": "run"}) + "\n")
    assert "line 1: schema 99 is newer" in refused(capfd, "tune", shapes, *folders)
    assert "schema 99" in refused(capfd, "journal", "list", "--state", str(tmp_path / "s"))
    line.unlink()
    assert run(("table", "show", "--json", *folders)) == 0
    path = Path(json.loads(capfd.readouterr().out)["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{")
    for verb in (("tune", shapes), ("table", "show"), ("table", "forget")):
        assert f"{path}: corrupt" in refused(capfd, *verb, *folders)
    assert path.read_text() == "{"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("study",), "STUDY"),
        (("study", "no-such-study", "--paper"), "mali-g610, ptq1_0-loader, rdna4-bigtile"),
        (("study", "absent.toml", "--paper"), "absent.toml: no such file"),
        (("study", "mali-g610", "--device", "mali-g610"), "give --paper"),
        (("study", "mali-g610", "--paper", "--device", "geforce-256"), "geforce-256"),
        (("study", "mali-g610", "--budget", "soon"), "soon"),
    ],
)
def test_studies_that_cannot_be(capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str) -> None:
    assert said in refused(capfd, *arguments)
