"""The verbs end to end on the software device, with a shape file small enough to tune in seconds."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from warptile.cli import options, run, show

SHAPES = """
name = "[bold]tiny[/bold]"
[[matmul]]
format = "Q4_1"
n = 96
k = 64
count = 3
[[matmul]]
format = "Q8_0"
n = 64
k = 32
role = "output"
"""


# A shell that runs a suite in the background has it ignore SIGINT, and every process below it.
HEEDED = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"


class Line:
    """A command line with folders and device filled in."""

    def __init__(self, folder: Path, device: str, capfd: pytest.CaptureFixture[str]) -> None:
        self.shapes = folder / "tiny.toml"
        self.shapes.write_text(SHAPES)
        self.state = ("--state", str(folder / "state"))
        self.folders = (*self.state, "--cache", str(folder / "cache"), "--device", device)
        self.locks = ("--locks", str(folder / "locks"))
        self.chosen = [
            word for each in options.given(device, folder / "state", folder / "cache").values() for word in each
        ]
        self.capfd = capfd

    def __call__(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        self.capfd.readouterr()
        got = run(arguments)
        out, err = self.capfd.readouterr()
        assert got == code, err
        return out, err

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code)[0])


@pytest.fixture
def line(tmp_path: Path, software_device: str, capfd: pytest.CaptureFixture[str]) -> Line:
    return Line(tmp_path, software_device, capfd)


def test_tune_then_everything_that_reads_what_it_kept(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    tune = ("tune", str(line.shapes), "--m", "16", "--budget", "30s", *line.folders)
    first = line.json(*tune)
    assert [row["problem"]["n"] for row in first["rows"]] == [96, 64]
    assert all(row["stock_seconds"] > 0 and row["seconds"] > 0 for row in first["rows"])
    assert first["sums"][0]["tokens_per_s"] >= first["sums"][0]["stock_tokens_per_s"]
    assert not first["rechecked"]
    again, *others = [hint["command"] for hint in first["hints"]]
    # A slow machine's hint asks for more time as well, between the file and the rest.
    assert f" tune {show.path(line.shapes)} " in again
    assert again.endswith(" --m 16 " + shlex.join(line.chosen))
    for command in others:
        assert line(*shlex.split(command)[1:])[0]

    # A race that a busy machine left undecided is raced again.
    undecided = any(row["decision"]["outcome"] == "undecided" for row in first["rows"])
    for columns in ("100", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        out, err = line(*tune)
        shown = [text for text in out.splitlines() if not text.startswith(("table  ", "journal  ", "  "))]
        assert max(len(text.rstrip()) for text in shown) <= int(columns)
        assert "…" not in out
        assert "[bold]tiny[/bold]" in out
        assert "re-checked, not repeated" in out or (undecided and "resumed: " in out)
        assert "tokens/s" in out
        assert "re-checking" in err or undecided

    table = line.json("table", "show", *line.folders)
    assert undecided or [row["tile"] for row in table["rows"]] == [row["tile"] for row in first["rows"]]
    assert "Q4_1 n=96 k=64" in line("table", "show", *line.folders)[0]
    assert line.json("table", "verify", *line.folders)["right"]

    found = line.json("journal", "list", "--kind", "decision", *line.state)["entries"]
    assert {hit["format"] for hit in found} == {"Q4_1", "Q8_0"}
    assert "decision" in line("journal", "list", *line.state)[0]
    entry = line.json("journal", "show", f"{found[0]['run']}:{found[0]['line']}", *line.state)
    assert entry["decision"]["outcome"] == found[0]["outcome"]

    report = line.json("bench", "ops", str(line.shapes), "--m", "16", "--budget", "5s", *line.folders)
    assert {row["status"] for row in report["rows"]} == {"tuned"}
    assert report["geomean"][0] > 0
    assert report["rows"][0]["ceiling_share"] > 0

    assert len(line.json("table", "forget", "--format", "Q8_0", *line.folders)["forgotten"]) == 1
    assert [row["format"] for row in line.json("table", "show", *line.folders)["rows"]] == ["Q4_1"]
    path = Path(table["path"])
    path.rename(path.with_suffix(".old"))
    assert [row["format"] for row in line.json("table", "rebuild", *line.folders)["rows"]] == ["Q4_1"]


def test_ctrl_c_says_what_was_kept_and_the_next_run_resumes(line: Line) -> None:
    command = [sys.executable, "-c", f"{HEEDED}; from warptile.cli import main; main()"]
    command += ["tune", str(line.shapes), "--m", "16", "--budget", "40s", *line.folders, *line.locks]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "screening" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "resumes" in err.splitlines()[-1]
    resumed = line.json("tune", str(line.shapes), "--m", "16", "--budget", "12s", *line.folders)
    assert resumed["recalled"] > 0
    assert len(resumed["rows"]) == 2


def test_a_device_another_tune_holds_is_refused_by_its_process(line: Line, tmp_path: Path) -> None:
    """Whatever the folders of the second: the lock is the machine's, which --locks stands for here."""
    command = [sys.executable, "-c", "from warptile.cli import main; main()"]
    command += ["tune", str(line.shapes), "--m", "16", "--budget", "40s", *line.folders, *line.locks]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        process.stderr.readline()
        other = ("--state", str(tmp_path / "b"), "--cache", str(tmp_path / "b"), *line.folders[-2:], *line.locks)
        assert "is in use by process" in line("tune", str(line.shapes), *other, code=2)[1]
        assert line("table", "show", *line.folders)[0]
    finally:
        process.kill()
        process.wait()
    # The lock ends with the worker, which ends once its killed parent's pipe closes.
    time.sleep(2)
    assert line("table", "verify", *line.folders)


def test_devices_and_check(line: Line, software_device: str) -> None:
    assert software_device in [entry["id"] for entry in line.json("devices")["devices"]]
    assert "mali-g610" in line("devices")[0]
    tile = ("--tile", "128,128,128,32,32,64,2,4,4,1,16", "--kernel", "mul_mm", "--format", "Q4_K")
    report = line.json("check", *tile, "--device", "mali-g610")
    assert report["valid"]
    assert report["price"]["shared_bytes"] > 0
    bad = ("--tile", "mul_mm:96,128,128,32,32,64,2,4,2,1,16", "--format", "Q4_K", "--device", "mali-g610")
    assert line("check", *bad, code=1)[0]


def test_prove_says_no_with_1(line: Line) -> None:
    prove = ("prove", "--format", "Q4_1", "--n", "64", "--k", "64", "--m", "4", *line.folders)
    assert line.json(*prove, "--kernel", "mul_mat_vec")["right"]
    # More accumulators than the kernel's rules allow: the tile is no candidate at all.
    refused = line.json(*prove, "--tile", "mul_mm_direct:8,4,3200,2,shuffle64,n", code=1)
    assert "accumulators" in refused["proofs"][0]["reason"]
    assert refused["proofs"][0]["verdict"] is None
