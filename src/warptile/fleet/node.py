"""One card on its node: what runs inside a fleet's actor. Plain values in and out, so that nothing is unpickled but
data."""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile import formats
from warptile.contracts import Ceilings, Identity, Limits, Problem, Race, UnusableInput, Workload, WorkloadRow
from warptile.gguf import open_gguf
from warptile.gguf.subset import write_tensor
from warptile.journal import Journal, from_json, to_json
from warptile.places import Places
from warptile.proof.version import PROOF_VERSION
from warptile.race import Screening
from warptile.runtimes.worker import Worker
from warptile.tables import Key, Point, Table
from warptile.tune import tune_on
from warptile.tuning.budget import Budget
from warptile.tuning.stand import Named, Proof, Stand
from warptile.tuning.worker_stand import WorkerStand


@dataclass(frozen=True)
class TensorShipped:
    """A model's tensor as it travels: digest is SHA-256 of its blocks, which the node checks."""

    name: str
    type_id: int
    digest: str


class NodeCard:
    """A device of this node, held (worker and lock) until `close`.

    folder: where this card keeps its own journal and table while it works; the fleet's driver keeps the real ones.
    Raises UnusableInput where the device cannot be opened or is in use.
    """

    def __init__(self, device: str, folder: Path, places: Places) -> None:
        self._device, self._folder, self._places = device, folder, places
        self._worker = Worker(device, places)
        self.identity: Identity = self._worker.identity()
        self.limits: Limits = self._worker.limits()

    def measure(
        self,
        problem: Problem,
        budget: float,
        seed: int,
        tensor: TensorShipped | None,
        blocks: NDArray[Any] | None,
        kept: tuple[Key, Point] | None,
    ) -> dict[str, Any]:
        """Tune one matmul here: search where `kept` is None, else prove and race what it names again.

        tensor, blocks: the model's own weights, u8[n, row bytes]; None: drawn ones. Returns {"identity", "proof",
        "key", "point" (None: nothing was found, "why" says why), "lines": this card's journal lines}.
        """
        shutil.rmtree(self._folder, ignore_errors=True)
        places = dataclasses.replace(self._places, state=self._folder).ready()
        if kept is not None:
            table = Table.load(places.state / "tables", self.identity)
            table.put(kept[0].problem(kept[1].m), kept[0].layout, kept[1])
            table.save()
        source, name = "fleet", ""
        if tensor is not None and blocks is not None:
            source, name = str(self._file(problem, tensor, blocks)), tensor.name
        nbytes = formats.by_name(problem.format).row_bytes(problem.k) * problem.n
        row = WorkloadRow(problem.format, problem.n, problem.k, "linear", (name,) if name else (), nbytes)
        workload = Workload(Path(source).name, source, (row,))
        stand = WorkerStand(self._device, places, workload, worker=self._worker)
        result = tune_on(
            QuietStand(stand, self._places.locks, self.limits.kind == "software"),
            workload, [problem.m], Budget(budget), places, None, seed, dtype=problem.x_dtype,
        )  # fmt: skip
        layout = formats.by_name(problem.format).layout.name
        point = Table.load(places.state / "tables", self.identity).point(problem, layout)
        why = "; ".join(reason for _, reason in result.unserved)
        lines = list(Journal(places.state / "journal").read().entries)
        shutil.rmtree(self._folder, ignore_errors=True)
        return {
            "identity": to_json(self.identity), "proof": PROOF_VERSION, "key": to_json(Key.of(problem, layout)),
            "point": to_json(point), "why": why, "lines": lines,
        }  # fmt: skip

    def close(self) -> None:
        """Give the device back."""
        self._worker.close()

    def _file(self, problem: Problem, tensor: TensorShipped, blocks: NDArray[Any]) -> Path:
        """A file of this one tensor in the node's cache, written once and checked against its digest at every use."""
        path = self._places.cache / "fleet" / f"{tensor.digest}.gguf"
        if not path.is_file() or _digest_of(path, tensor.name) != tensor.digest:
            write_tensor(path, tensor.name, tensor.type_id, problem.n, problem.k, blocks)
            if _digest_of(path, tensor.name) != tensor.digest:
                raise UnusableInput(f"{path}: the weights that arrived are not those that were sent")
        return path


def digest(blocks: NDArray[Any]) -> str:
    """SHA-256, hexadecimal, of a tensor's blocks."""
    return hashlib.sha256(np.ascontiguousarray(blocks).data).hexdigest()


def _digest_of(path: Path, name: str) -> str:
    try:
        return digest(open_gguf(path).blocks(name))
    except UnusableInput:
        return ""


class QuietStand:
    """A stand that keeps other work of its node off its measurements.

    A software device shares the processor with every compiler and reference of the node: its screenings and races run
    alone, all else of the node waiting. A card's do not: its timestamps are its own, and they wait for nobody.
    """

    def __init__(self, stand: Stand, folder: Path, software: bool) -> None:
        self._stand, self._path, self._software = stand, folder / "measuring.lock", software

    def describe(self) -> tuple[Limits, Identity]:
        """See `Stand`."""
        return self._stand.describe()

    def uuid(self) -> str:
        """See `Named`."""
        return self._stand.uuid() if isinstance(self._stand, Named) else ""

    def ceilings(self) -> Ceilings:
        """See `Stand`."""
        with self._turn(alone=self._software):
            return self._stand.ceilings()

    def ahead(self, wanted: Sequence[tuple[str, Problem]], deadline: float) -> int:
        """See `Stand`."""
        with self._turn(alone=False):
            return self._stand.ahead(wanted, deadline)

    def watch(self, tile: str, problem: Problem, seed: int, deadline: float) -> None:
        """See `Stand`."""
        with self._turn(alone=False):
            self._stand.watch(tile, problem, seed, deadline)

    def prove(self, tile: str, problems: Sequence[Problem], seed: int, deadline: float) -> Proof:
        """See `Stand`."""
        with self._turn(alone=False):
            return self._stand.prove(tile, problems, seed, deadline)

    def screen(
        self,
        problem: Problem,
        proved: Mapping[str, int],
        seconds: float,
        seed: int,
        deadline: float,
        thorough: bool = False,
    ) -> Screening:
        """See `Stand`."""
        with self._turn(alone=self._software):
            return self._stand.screen(problem, proved, seconds, seed, deadline, thorough)

    def race(
        self,
        problem: Problem,
        incumbent: str,
        challenger: str,
        proved: Mapping[str, int],
        seconds: float,
        rounds: int,
        seed: int,
        deadline: float,
        fresh: bool = False,
        most_rounds: int = 0,
    ) -> Race:
        """See `Stand`."""
        arguments = (problem, incumbent, challenger, proved, seconds, rounds, seed, deadline, fresh, most_rounds)
        with self._turn(alone=self._software):
            return self._stand.race(*arguments)

    def close(self) -> None:
        """See `Stand`."""
        self._stand.close()

    @contextmanager
    def _turn(self, alone: bool) -> Iterator[None]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield
        finally:
            os.close(file)


def point_of(result: Mapping[str, Any]) -> tuple[Key, Point] | None:
    """(key, point) of what `measure` returned; None where it found nothing."""
    if result.get("point") is None:
        return None
    return from_json(Key, result["key"]), from_json(Point, result["point"])
