"""What is fuzzed: every reader of a file that may come from somebody else, on any bytes.

A target reads `data` and uses what it found as the verbs do. It may raise a `WarptileError`, whose text is one line;
anything else that leaves it (another exception, a hang, memory out of proportion) is a fault. Both the tests here and
`by_hand.py` run these.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from warptile import devices, kernels, studies
from warptile.contracts import Identity, Problem, WarptileError
from warptile.gguf import open_gguf
from warptile.handover import handover, parts_of
from warptile.journal import Journal
from warptile.journal.history import History
from warptile.journal.index import Index
from warptile.journal.merge import merge
from warptile.proof.version import PROOF_VERSION
from warptile.studies import paper
from warptile.tables import Table, rebuild_from
from warptile.tables.table import read_file, table_path
from warptile.trace.reading import read_own_trace, read_trace
from warptile.tuning.recall import Recall
from warptile.workloads import from_gguf, from_shapes
from warptile.workloads.experts import routing_of

Target = Callable[[bytes, Path], None]
WHO = Identity("Sample card", "1.0", "glslang 13", "vulkan")
CARD = "mali-g610"


def gguf(data: bytes, folder: Path) -> None:
    """Header, directory, every tensor's blocks, and the matmuls of the model."""
    path = _file(folder, "model.gguf", data)
    model = open_gguf(path)
    for name, tensor in model.tensors.items():
        if tensor.known:
            assert model.blocks(name).nbytes == tensor.nbytes <= len(data)
    from_gguf(path).problems(128)


def table(data: bytes, folder: Path) -> None:
    """A table of a device: its rows, what it serves, and the same again after it was saved."""
    _file(folder, table_path(Path(), WHO).name, data)
    found = Table.load(folder, WHO)
    for row in found.rows():
        for m in (1, row.m_low, row.m_high, 4 * row.m_high):
            served = found.lookup(row.key.problem(m), row.key.layout, PROOF_VERSION)
            if served is not None:
                _tile(served.tile)
    read_file(found.path)
    found.save()
    assert Table.load(folder, WHO).to_json() == found.to_json()


def journal(data: bytes, folder: Path) -> None:
    """A run's file: read, indexed, searched, replayed into a table, written up, and merged into another journal."""
    held = Journal(folder / "journal")
    file = _file(held.folder, "20260101T000000.000000Z-00000000.jsonl", data)
    entries = held.read().entries
    Recall(entries, WHO, PROOF_VERSION)
    with Index(":memory:") as index:
        index.refresh(held)
        index.find()
    for use in (
        lambda: handover(parts_of(History.read(entries))),
        lambda: rebuild_from(held, folder / "tables", WHO).rows(),
        lambda: merge(Journal(folder / "other"), [file]),
    ):
        try:
            use()
        except WarptileError as error:
            _one_line(error)


def study(data: bytes, folder: Path) -> None:
    """A study, and its paper on a card."""
    found = studies.load(_file(folder, "study.toml", data))
    if sum(len(arm.tiles) if hasattr(arm, "tiles") else 1 for arm in found.arms) * len(found.problems) < 64:
        paper(found, devices.by_name(CARD))


def shapes(data: bytes, folder: Path) -> None:
    """A shape file's matmuls."""
    from_shapes(_file(folder, "shapes.toml", data)).problems(128)


def tile(data: bytes, folder: Path) -> None:
    """A tile's text, as tables, journals and command lines hold it: its rules, and its price where none is broken."""
    _tile(data.decode("utf-8", "replace"))


def trace(data: bytes, folder: Path) -> None:
    """Another program's trace, and this one's own."""
    path = _file(folder, "trace", data)
    for read in (read_trace, read_own_trace):
        try:
            read(path)
        except WarptileError as error:
            _one_line(error)


def routing(data: bytes, folder: Path) -> None:
    """A file of how tokens spread over experts."""
    routing_of(str(_file(folder, "routing.json", data)))


TARGETS: dict[str, Target] = {
    each.__name__: each for each in (gguf, table, journal, study, shapes, tile, trace, routing)
}


def run(name: str, data: bytes, folder: Path) -> str:
    """One input; what the reader refused it with, "" where it did not."""
    try:
        TARGETS[name](data, folder)
    except WarptileError as error:
        return _one_line(error)
    return ""


def _tile(text: str) -> None:
    try:
        kernel, parsed = kernels.parse_tile(text)
    except WarptileError as error:
        _one_line(error)
        return
    assert kernel.tile_type.parse(parsed.text()) == parsed
    limits = devices.by_name(CARD)
    for problem in (Problem("Q4_0", 4096, 4096, 128), Problem("Q6_K", 100, 256, 1)):
        if not kernel.broken_rules(parsed, problem, limits):
            json.dumps(vars(kernel.price(parsed, problem, limits)), default=str)


def _one_line(error: WarptileError) -> str:
    text = str(error)
    assert text
    assert text.isprintable(), repr(text)
    return text


def _file(folder: Path, name: str, data: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(data)
    return path
