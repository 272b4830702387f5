"""The handover of a journal holds everything a stranger needs, and says what it does not know."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from fakes_loop import IDENTITY, LIMITS, FakeKernel, FakeStand, FakeTile

from warptile import devices
from warptile.contracts import (
    Arm,
    CompileFailed,
    Decision,
    DeviceState,
    Identity,
    Limits,
    Problem,
    Race,
    Verdict,
)
from warptile.handover import handover, parts_of
from warptile.handover.commands import command_of
from warptile.handover.levers import levers_of
from warptile.handover.rows import rows_of
from warptile.journal import Asked, Journal, entries
from warptile.journal.facts import Run
from warptile.journal.history import History
from warptile.journal.record import Record
from warptile.kernels import parse_tile
from warptile.studies.pair import Pair, measure_pair
from warptile.tables import Key, Point, Validity
from warptile.tuning.notes import Book
from warptile.workloads.texts import problem_of

WHO = Identity("NVIDIA H200", "580", "glslang 13", "vulkan")
PROBLEM = Problem("Q4_K", 4096, 4096, 128)
STOCK, BETTER, WORSE = (
    parse_tile(f"mul_mm:{numbers}")[1].text()
    for numbers in (
        "128,128,128,32,64,64,2,4,4,1,32",
        "128,64,128,32,32,64,2,4,4,1,32",
        "128,32,32,32,32,32,2,2,2,1,32",
    )
)
HOT = DeviceState("nvml", "", 4, (1755.0, 1800.0, 1980.0), None, (50.0, 55.0, 61.0), None, ("software power cap",))


def raced(control: str, arm: str, ratio: float, seconds: float = 1e-3) -> Race:
    return Race(
        Arm(control, PROBLEM), Arm(arm, PROBLEM), ratio, ratio * 0.99, ratio * 1.01, 0.95, 0.004, seconds,
        seconds / ratio, 40, 3, 10**9, 10**8, (seconds,) * 40, (seconds / ratio,) * 40,
    )  # fmt: skip


def a_journal(folder: Path) -> Journal:
    """A tune by its price that gained, a study by a person that lost, and a candidate that did not compile."""
    journal, limits = Journal(folder), devices.by_name("h200")
    command = ("tune", "/home/someone/models/m.gguf", "--device", "vulkan:0", "--state", "/home/someone/state")
    tune = Record(journal, WHO, limits, Asked("tune", command))
    tune.start(source="/home/someone/models/m.gguf", ms=[128], seed=3, budget=60.0)
    kernel, _ = parse_tile(STOCK)
    prices = [kernel.price(parse_tile(each)[1], PROBLEM, limits) for each in (STOCK, BETTER)]
    believed = tune.hypothesis(PROBLEM, (STOCK, BETTER), (prices[0], prices[1]))
    refs = [
        tune.race(stage, raced(STOCK, BETTER, ratio), ("s", "b"), (prices[0], prices[1]), HOT, believed)
        for stage, ratio in (("final", 1.2), ("confirm", 1.3))
    ]
    told = Decision("accept", "1.2x")
    tune.decision(PROBLEM, STOCK, BETTER, told, believed, refs, "layout")
    validity = Validity("580", "glslang 13", "a", 1)
    point = Point(128, BETTER, STOCK, 8e-4, 1e-3, 1.2, 1.19, 1.21, 0.004, "accept", "r", validity, 40, "t", journal.run)
    tune.append(entries.table(WHO, "put", Key.of(PROBLEM, "layout"), point))
    tune.append(
        entries.candidate(
            WHO, WORSE, PROBLEM, "compile", "/home/someone/.cache/k.ptx: out of | registers\nat line 3, A/A", "s"
        )
    )
    tune.append(entries.confirmation(WHO, "m.gguf", {"agreement": {"kl_mean": 1.5e-4}}, True, ()))
    tune.end()
    later = Journal(folder)
    study = Record(later, WHO, limits, Asked("study", ("study",), "smaller is\nbetter"), journal.read().entries)
    study.start(source="", seed=0, budget=60.0)
    again = study.hypothesis(PROBLEM, (BETTER, WORSE), (prices[1], None), said=entries.Prediction(1.5, by="person"))
    ref = study.race("study", raced(BETTER, WORSE, 0.8, 8e-4), ("b", "w"), (prices[1], None), HOT, again)
    study.decision(PROBLEM, BETTER, WORSE, Decision("reject", "0.8x: not faster"), again, [ref], "study")
    study.end()
    return journal


def test_every_section_says_what_the_journal_holds_and_no_path_of_the_machine(tmp_path: Path) -> None:
    (part,) = parts_of(History.of(a_journal(tmp_path)))
    text = handover([part], levers=0)
    assert text.startswith("# Handover: NVIDIA H200 through vulkan\n")
    assert "/home/someone" not in text
    assert "`warptile tune m.gguf --device vulkan:0`" in text
    assert "| H1 | Q4_K n=4096 k=4096 m=128 dtype=fp32 | `mul_mm:128,128,128,32,64,64,2,4,4,1,32`" in text
    assert "1.200x [1.188, 1.212]; fresh 1.300x [1.287, 1.313] | 1.004 | gain | accept |" in text
    assert "1.50x by person | 0.800x [0.792, 0.808] | 1.004 | loss | reject |" in text
    assert "State of the device in every race: 1755 to 1980 MHz, 61 C, held back: software power cap." in text
    assert "- H2: asked with: smaller is better" in text
    assert "| compile | k.ptx: out of \\| registers at line 3, A/A | 1 |" in text
    assert "1.200x [1.190, 1.210] | 3 |" in text  # the champion, of three tiles timed
    assert "- m.gguf, tuned, is still its file's model, mean divergence 1.5e-04 nats" in text
    assert "direction of what raced clearly: right 1 times of 2" in text
    assert "`mul_mm:128,64,128,32,32,64,2,4,4,1,32` 1.00 (1), `mul_mm:128,32,32,32,32,32,2,2,2,1,32` 1.25, `" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in rows)


def test_each_row_has_the_command_that_repeats_it(tmp_path: Path) -> None:
    history = History.of(a_journal(tmp_path))
    text = handover(parts_of(history), levers=0)
    commands = dict(re.findall(r"^# (H\d+)\n(.*)$", text, re.MULTILINE))
    words = shlex.split(commands["H1"])
    assert words[:2] == ["warptile", "study"]
    given = {words[i]: words[i + 1] for i in range(len(words) - 1) if words[i].startswith("--")}
    assert words[words.index("--arms") + 1 :][:2] == [STOCK, BETTER]
    assert problem_of(given["--problem"]) == PROBLEM
    assert given["--device"] == "vulkan:NVIDIA H200"
    assert (given["--model"], given["--seed"]) == ("m.gguf", "3")
    low, high, floor = (float(each) for each in given["--recorded"].split(","))
    assert (low, high, floor) == (pytest.approx(1.188), pytest.approx(1.313), 0.004)


def test_a_journal_without_hypotheses_gets_them_from_its_races_and_prices() -> None:
    samples = Path(__file__).parent.parent / "data" / "journal"
    for sample in ("schema1-1", "schema1-4"):
        lines = Journal(samples).read().entries
        (row,) = rows_of(History.read(e for e in lines if e["run"] == sample))
        assert not row.written
        assert row.answer == "gain"
        assert row.decision.outcome == "accept"
        assert row.races[0].race.rounds == 3


def test_levers_are_what_was_not_measured_corrected_by_what_was(tmp_path: Path) -> None:
    (part,) = parts_of(History.of(a_journal(tmp_path)))
    levers = levers_of(part, 1)
    assert levers
    assert [each.share for each in levers] == sorted((each.share for each in levers), reverse=True)
    assert not {each.arm for each in levers} & {STOCK, BETTER, WORSE}
    assert all(each.control == BETTER and each.gain > 1 for each in levers)
    kernel, tile = parse_tile(levers[0].arm)
    assert part.limits is not None
    assert not kernel.broken_rules(tile, PROBLEM, part.limits)


def test_what_was_not_raced_and_what_was_asked_twice(tmp_path: Path) -> None:
    tiles = [FakeTile(*each).text() for each in ((1, 1), (8, 4), (4, 4))]
    stand = FakeStand(faults={tiles[2]: CompileFailed("no registers")})
    for arm in (tiles[1], tiles[2], tiles[1]):
        journal = Journal(tmp_path)
        book = Book(Record(journal, IDENTITY, LIMITS, Asked("study")), {"fake.tile": FakeKernel()})
        book.record.start()
        measure_pair(Pair(tiles[0], arm, Problem("Q4_1", 576, 576, 32)), stand, book, 10.0)
    (part,) = parts_of(History.of(Journal(tmp_path)))
    assert [row.answer for row in part.rows] == ["gain", "compile", "gain"]
    assert [row.superseded for row in part.rows] == [3, 0, 0]
    text = handover([part])
    assert "not raced: compile: no registers" in text
    assert "No command here repeats H1, H2, H3" in text  # a kernel this version does not have
    assert "killed, or still at work" in text


def test_a_command_line_is_told_without_this_machines_folders() -> None:
    run = Run("r", command=("tune", "/a b/m.gguf", "--state=/s", "--cache", "/c", "--because", "it's / so", "--m", "1"))
    assert shlex.split(command_of(run)) == ["warptile", "tune", "m.gguf", "--because", "it's / so", "--m", "1"]


def test_two_runtimes_of_one_device_are_two_parts(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    limits: Limits = devices.by_name("h200")
    for runtime in ("vulkan", "cuda"):
        who = Identity("NVIDIA H200", "580", "", runtime)
        Record(journal, who, limits).append(
            entries.verdict(who, STOCK, PROBLEM, Verdict(False, ("bound",), "bound", "off"), "", "", [4096], 0.1)
        )
    text = handover(parts_of(History.of(journal)))
    assert "## NVIDIA H200 through cuda" in text
    assert text.count("| wrong | bound: off | 1 |") == 2
