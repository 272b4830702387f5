"""A journal as typed values: narrowed by device, and with a fleet's references resolved."""

from pathlib import Path

from warptile import devices
from warptile.contracts import Arm, Decision, Identity, Problem, Race
from warptile.journal import Asked, Journal, entries
from warptile.journal.history import History
from warptile.journal.record import Record

PROBLEM = Problem("Q4_K", 4096, 4096, 128)
ARMS = ("vulkan.a:n=1", "vulkan.b:n=2")


def raced(folder: Path, device: str) -> Journal:
    """A hypothesis, its race and its decision."""
    journal = Journal(folder)
    record = Record(journal, Identity(device, "1", "c", "vulkan"), devices.by_name("h200"), Asked("tune"))
    record.start(source="m.gguf", ms=[128])
    believed = record.hypothesis(PROBLEM, ARMS, (None, None))
    race = Race(Arm(ARMS[0], PROBLEM), Arm(ARMS[1], PROBLEM), 2.0, 1.9, 2.1, 0.95, 0.01, 2.0, 1.0, 9, 1, 2, 1)
    ref = record.race("final", race, ("s", "t"), (None, None), None, believed)
    record.decision(PROBLEM, *ARMS, Decision("accept", "r"), believed, [ref], "l")
    return journal


def test_a_cards_lines_in_a_fleets_file_find_each_other(tmp_path: Path) -> None:
    card = raced(tmp_path / "card", "One")
    fleet = Journal(tmp_path / "fleet")
    fleet.append(entries.start(None, Asked("fleet"), "0"))
    for line in card.read().entries:
        fleet.append({**line, "card": "node/vulkan:0"})
    history = History.of(fleet)
    assert history.unread == ()
    (believed,), (race,), (decided,) = history.hypotheses, history.races, history.decisions
    assert believed.run == fleet.run
    assert race.hypothesis == decided.hypothesis == believed.ref
    assert decided.races == (race.ref,)


def test_narrowed_by_device_runtime_and_format(tmp_path: Path) -> None:
    for device in ("NVIDIA H200", "Mali-G610"):
        raced(tmp_path, device)
    history = History.of(Journal(tmp_path))
    asked = (("h200",), (None, "cuda"), (None, None, "q4_k"), (None, None, "Q8_0"))
    assert [len(history.only(*words).races) for words in asked] == [1, 0, 2, 0]
    assert len(history.exactly("Mali-G610", "vulkan").timings) == 2
    assert {t.seconds for t in history.timings} == {1.0, 2.0}
    assert [run.ended for run in history.runs.values()] == ["", ""]
    assert history.runs[history.races[0].run].limits == devices.by_name("h200")
