"""`warptile study` as a person and a program read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warptile.cli import run


def test_the_paper_table(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert run(("study", "mali-g610", "--paper")) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert "not measurements" in out
    assert "predicted: it5 > it4 > it3 > it1 > it6 > it2 > stock, Spearman 1.00" in out
    assert "loss, 0.632x against it1; the source: 9.7" in out
    assert all(len(line) <= 100 for line in out.splitlines() if "─" in line)


def test_the_paper_table_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(("study", "ptq1_0-loader", "--paper", "--device", "h200", "--json")) == 0
    value = json.loads(capfd.readouterr().out)
    assert value["device"].startswith("NVIDIA H200") or value["device"] == "h200"
    assert value["predicted"][0].startswith("J")
    assert value["rows"][0]["price"]["shared_bytes"] == 27648


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('question = "q"\n', "", "question is missing"),
        ('control = "a"', 'control = "a"\nseconds = 5', "its only arm is its control: there is nothing to compare"),
        ("mul_mmq:256", "mul_none:256", "[[arm]] 1 (a): tile: no kernel 'mul_none'"),
        (",16,1,2,2,1,16,2", ",24,1,2,2,1,16,2", "no arm fits mali-g610 at any size; a on p:"),
        ("64,64,32", "1024,1024,32", "no arm fits mali-g610 at any size; a on p:"),
    ],
)
def test_a_bad_study_is_one_line_and_exit_2(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, before: str, after: str, said: str
) -> None:
    path = tmp_path / "bad.toml"
    text = (
        'question = "q"\nhypothesis = "h"\ndevice = "mali-g610"\ncontrol = "a"\nexpected = ["a"]\n'
        '[[problem]]\nname = "p"\nformat = "Q4_K"\nn = 64\nk = 256\nm = 32\n'
        '[[arm]]\nname = "a"\ntile = "mul_mmq:256,64,64,32,16,16,1,2,2,1,16,2"\n'
    )
    assert before in text
    path.write_text(text.replace(before, after))
    assert run(("study", str(path), "--paper")) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said in err


def test_a_study_file_is_shown_escaped(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(
        'question = "[bold]\\u001b[31mred"\nhypothesis = "h"\ndevice = "mali-g610"\ncontrol = "a"\nexpected = ["a"]\n'
        '[[problem]]\nname = "p"\nformat = "Q4_K"\nn = 64\nk = 256\nm = 32\n'
        '[[arm]]\nname = "a"\ntile = "mul_mmq:256,64,64,32,16,16,1,2,2,1,16,2"\n'
        '[[arm]]\nname = "b"\ntile = "mul_mmq:256,64,64,32,16,16,1,2,2,1,16,1"\n'
    )
    assert run(("study", str(path), "--paper")) == 0
    out = capfd.readouterr().out
    assert "\x1b" not in out
    assert "[bold]\\x1b[31mred" in out
