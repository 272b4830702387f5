"""Where the output goes is not ours: a closed pipe, a full disk, a reader that has left."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from warptile.cli import run
from warptile.routing import UntunedWarning

MAIN = [sys.executable, "-c", "from warptile.cli import main; main()"]
CHECK = ["check", "--tile", "128,128,128,32,32,64,2,4,2,1,16", "--kernel", "mul_mm", "--device", "mali-g610"]


def closed_pipe() -> int:
    read, write = os.pipe()
    os.close(read)
    return write


@pytest.mark.parametrize("verb", [CHECK, [*CHECK, "--json"]], ids=["text", "json"])
def test_a_reader_that_left_ends_it_quietly(verb: list[str]) -> None:
    out = closed_pipe()
    done = subprocess.run([*MAIN, *verb], stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    os.close(out)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("verb", [CHECK, [*CHECK, "--json"]], ids=["text", "json"])
def test_a_full_disk_is_one_line(verb: list[str]) -> None:
    with open("/dev/full", "w") as out:
        done = subprocess.run([*MAIN, *verb], stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "warptile: the output cannot be written: No space left on device\n"


def test_work_goes_on_where_nobody_watches(tmp_path: Path, software_device: str) -> None:
    verb = ["prove", "--format", "Q4_1", "--n", "64", "--k", "64", "--m", "1", "--kernel", "mul_mat_vec"]
    folders = ["--state", str(tmp_path / "s"), "--cache", str(tmp_path / "c"), "--device", software_device]
    folders += ["--locks", str(tmp_path / "l")]
    err = closed_pipe()
    done = subprocess.run([*MAIN, *verb, *folders], stdout=subprocess.PIPE, stderr=err, text=True, check=False)
    os.close(err)
    assert done.returncode == 0
    assert done.stdout.rstrip().endswith("0 wrong")


def test_no_verb_shows_the_verbs(capfd: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    shown = capfd.readouterr().out
    assert all(verb in shown for verb in ("tune", "prove", "check", "table", "journal"))


def test_an_untuned_notice_is_one_line_without_source(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def verb(*_: Any, **__: Any) -> None:
        warnings.warn("Q4_K is served untuned: nothing was measured", UntunedWarning, stacklevel=1)

    monkeypatch.setattr("warptile.cli.app", verb)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run([]) == 0
    assert capsys.readouterr().err == "warptile: Q4_K is served untuned: nothing was measured\n"
