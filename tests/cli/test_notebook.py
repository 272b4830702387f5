"""The notebook as a person uses it: a hypothesis raced, found again, handed over, and repeated from the document."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from warptile.cli import run
from warptile.contracts import Identity
from warptile.journal import Journal, entries
from warptile.places import Places

PROBLEM = "Q4_1 n=192 k=576 m=32"
ARMS = ("mul_mm_direct:8,8,32,4,shuffle64,n", "mul_mm_direct:8,8,8,4,shuffle64,n")


def test_a_hypothesis_is_raced_found_handed_over_and_repeated(
    tmp_path: Path, places: Places, own_locks: Path, software_device: str, capfd: pytest.CaptureFixture[str]
) -> None:
    state = ("--state", str(tmp_path / "state"))
    more = (*state, "--cache", str(places.cache), "--locks", str(own_locks))
    because = "half as many sums, twice the 'loads'"
    study = ("study", "--arms", *ARMS, "--problem", PROBLEM, "--device", software_device, "--budget", "20s")
    assert run((*study, "--because", because, *more)) == 0
    assert because in capfd.readouterr().out

    assert run(("journal", "search", "SUMS", "loads", "--kernel", "mul_mm_direct", "--kind", "hypothesis", *state)) == 0
    out = capfd.readouterr().out
    assert "hypothesis" in out
    found = re.search(r"^run (\S+)", out, re.MULTILINE)
    assert found is not None
    assert run(("journal", "show", f"{found[1]}:1", "--json", *state)) == 0
    first = json.loads(capfd.readouterr().out)
    assert (first["verb"], first["because"]) == ("study", because)
    assert tuple(first["command"][:4]) == ("study", "--arms", *ARMS)
    for nothing in (
        ("sums", "--kernel", "gemm"),
        ("sums", "--since", "2999"),
        ("sums", "--format", "Q8_0"),
        ("absent",),
    ):
        assert run(("journal", "search", *nothing, *state)) == 0
        assert "no entries" in capfd.readouterr().out

    document = tmp_path / "handover.md"
    assert run(("journal", "handover", "--out", str(document), "--levers", "0", *state)) == 0
    text = document.read_text()
    assert str(tmp_path) not in text
    (command,) = re.findall(r"^# H1\n(.*)$", text, re.MULTILINE)
    words = shlex.split(command)
    assert words.pop(0) == "warptile"
    capfd.readouterr()
    # Other work on the machine moves times between two runs of seconds each, so that one repeat in a few may miss.
    outcomes = []
    for _ in range(4):
        outcomes.append(run((*words, *more)))
        if outcomes[-1] == 0:
            break
    assert outcomes[-1] == 0, capfd.readouterr().out
    assert "the new interval overlaps" in capfd.readouterr().out


def test_a_newer_journal_and_edited_lines_are_one_clear_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    journal = Journal(tmp_path / "journal")
    who = Identity("llvmpipe", "1", "c", "vulkan")
    for event in ("start", "end"):
        journal.append(entries.run(event, who))
    journal.path.write_text(journal.path.read_text().replace('"end"', '"won"'))
    assert run(("journal", "list", "--state", str(tmp_path))) == 0
    out, err = capfd.readouterr()
    assert "won" in out
    assert err.count("\n") == 1
    assert "line 2: changed since it was written" in err
    with journal.path.open("a") as stream:
        stream.write('{"schema": 99, "kind": "run"}\n')
    for verb in (
        ("journal", "list"),
        ("journal", "handover"),
        ("journal", "search", "x"),
        ("journal", "show", journal.run),
    ):
        assert run((*verb, "--state", str(tmp_path))) == 2
        out, err = capfd.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert "line 3: schema 99 is newer than this warptile's" in err


def test_a_merge_shows_conflicts_side_by_side_and_exits_1(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    journal = Journal(here / "journal")
    journal.append(entries.run("start", None, source="a"))
    other = Journal(there / "journal")
    other.append(entries.run("start", None, source="b"))
    assert run(("journal", "merge", str(there), "--state", str(here))) == 0
    assert "1 entries taken, 1 new runs, 0 were here already" in capfd.readouterr().out
    other.path.write_text(other.path.read_text().replace('"b"', '"c"'))
    assert run(("journal", "merge", str(there), "--state", str(here))) == 1
    out = capfd.readouterr().out
    assert re.search(r"source +b +c", out)
    assert run(("journal", "merge", str(tmp_path / "none.jsonl"), "--state", str(here))) == 2
    assert "cannot be read" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--arms", *ARMS), "--arms needs --problem"),
        (("--problem", PROBLEM), "study needs a STUDY's name"),
        (("--arms", *ARMS, "--problem", "Q4_1 n=192 m=32"), "k is missing"),
        (("--arms", *ARMS, "--problem", "Q4_1 n=192 k=100 m=32"), "k = 100 is not a multiple"),
        (("--arms", *ARMS, "--problem", "Q4_1 n=1 k=32 m=1 dtype=fp8"), "type fp8 is none of"),
        (("--arms", *ARMS, "--problem", "Q4_1 n=1 k=32 m=1 x=slots"), "x=slots and y=sum are of grouped matmuls"),
        (("--arms", *ARMS, "--problem", "Q4_1 n=1 k=32 m=1 y=mean"), "y=mean is none of slots, sum"),
        (("--arms", *ARMS, "--problem", PROBLEM, "--recorded", "2,1"), "is no interval of a ratio"),
        (("--arms", *ARMS, "--problem", PROBLEM, "--expect", "-1"), "is no ratio"),
        (("--arms", ARMS[0], "mul_none:1", "--problem", PROBLEM), "no kernel 'mul_none'"),
        (("--arms", *ARMS, "--problem", PROBLEM, "--device", "h200"), "is a data file"),
    ],
)
def test_a_bad_hypothesis_is_one_line_and_exit_2(
    words: tuple[str, ...], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    paper = () if "--device" in words else ("--paper", "--device", "lavapipe")
    assert run(("study", *words, *paper)) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize(
    ("arms", "problem"),
    [
        (
            ("mul_mm:128,128,128,32,64,64,2,4,4,1,32", "mul_mm:128,64,128,32,32,64,2,4,4,1,32"),
            "q4_k n=4096 k=4096 m=128",
        ),
        (
            ("gemm:64,128,128,1,8,4,4,fp16,half", "gemm:128,64,128,1,8,4,2,fp16,half"),
            "Q4_K n=4096 k=4096 m=2048 dtype=fp16",
        ),
    ],
)
def test_a_hypothesis_on_paper_for_a_card_that_is_not_here(
    arms: tuple[str, str], problem: str, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("study", "--paper", "--device", "h200", "--arms", *arms, "--problem", problem)
    assert run((*words, "--json")) == 0
    told = json.loads(capfd.readouterr().out)["predicted"]
    assert told["ratio"] == pytest.approx(told["seconds"][0] / told["seconds"][1])
    assert run(words) == 0
    assert f"expected {told['ratio']:.3f}x by the price" in capfd.readouterr().out
