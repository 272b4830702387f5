"""`warptile tune --llama-cpp`: the fastest tuple of each of llama.cpp's pipelines, on its own shader."""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warptile import formats, workloads
from warptile.contracts import CandidateRejected, Decision, Limits, Problem, Race, UnusableInput, Workload, WorkloadRow
from warptile.journal import Asked, Journal
from warptile.kernels.vulkan.llama_cpp import LlamaCpp, LlamaCppTile, of_checkout
from warptile.kernels.vulkan.llama_cpp.choice import size_for
from warptile.llama_cpp.checkout import Checkout
from warptile.places import Places
from warptile.proof.version import PROOF_VERSION
from warptile.tables import Point, Table, Validity
from warptile.tables.points import CHECKOUT
from warptile.tune import tune_on
from warptile.tuning.budget import Budget
from warptile.tuning.notes import Notes, now
from warptile.tuning.recall import Recall
from warptile.tuning.result import Progress, TuneResult, TuneRow, bare, model_sum
from warptile.tuning.stand import Proof, Stand

FORMATS = ("Q4_K",)
MS = (32, 64, 128)
"""Tokens that take the small, the medium and the large pipeline."""

SIDE = {"software": 1024, "gpu": 4096}
RESIDENT_BYTES = 1 << 30
"""What the worker may hold: a software driver keeps tens of megabytes a tuple, and takes long to compile it again."""

JOINT_ROUNDS = 24
JOINT_SECONDS = 20.0


def layout_name(checkout: Checkout) -> str:
    """What a table keeps winners of a checkout's shaders under."""
    return f"{CHECKOUT}{checkout.fingerprint}"


@dataclass(frozen=True)
class Wanted:
    """What to tune: formats at n weight rows of k elements (0: 1024 on software devices, else 4096).

    model: a model whose matmuls in these formats are tuned for instead.
    """

    formats: tuple[str, ...] = FORMATS
    n: int = 0
    k: int = 0
    model: str = ""


def tune_checkout(
    path: str | Path,
    device: str = "vulkan:0",
    wanted: Wanted | None = None,
    ms: Sequence[int] = MS,
    budget: float = 300.0,
    places: Places | None = None,
    progress: Progress | None = None,
    seed: int = 0,
    explore_on: bool = False,
    told: Asked | None = None,
) -> TuneResult:
    """Find, prove, race and keep the fastest tuple for the pipelines of a checkout's Vulkan back end on a device.

    ms: numbers of tokens; up to 32 take the small pipeline, up to 64 the medium, more the large one. Formats share a
    tuple: where the winners of one pipeline differ, each is raced on the others' matmuls too, and the one that is
    fastest over all is kept for all. The stock tuple is the host's own. told: for the journal, who asked and why.
    Raises UnusableInput for a checkout, device or format that cannot be used.
    """
    clock = Budget(budget)
    checkout = Checkout.open(path)
    kept = (places or Places.default()).ready()
    kernel = of_checkout(checkout)
    from warptile.tuning.worker_stand import WorkerStand

    asked = wanted or Wanted()
    model = workloads.load(asked.model) if asked.model else None
    with contextlib.closing(WorkerStand(device, kept, model, (kernel,), RESIDENT_BYTES)) as stand:
        limits, _ = stand.describe()
        workload = workload_of(asked, limits, checkout, model)
        kernels = [kernel]
        layout = layout_name(checkout)
        result = tune_on(
            stand,
            workload,
            ms,
            clock,
            kept,
            progress,
            seed,
            explore_on,
            kernels,
            layout_of=lambda _: layout,
            asked=told,
        )
        return _agreed(result, stand, kernel, limits, kept, layout, seed)


def workload_of(asked: Wanted, limits: Limits, checkout: Checkout, model: Workload | None = None) -> Workload:
    """The matmuls to tune for. Raises UnusableInput for a format the model does not hold, or none known."""
    known = {name.lower(): name for name in formats.all_formats()}
    names = [known.get(name.lower(), name) for name in asked.formats]
    for name in names:
        formats.by_name(name)
    if model is not None:
        rows = tuple(r for r in model.rows if r.format in names and r.role != "experts")
        if not rows:
            raise UnusableInput(f"{model.source}: no matmul in {', '.join(names)}; give --format")
        return replace(model, rows=rows)
    side = SIDE[limits.kind]
    n, k = asked.n or side, asked.k or side
    made = tuple(WorkloadRow(name, n, k, "linear", (), 0, count=1) for name in names)
    return Workload(f"llama.cpp at {checkout.root.name}", str(checkout.root), made)


def _agreed(
    result: TuneResult, stand: Stand, kernel: LlamaCpp, limits: Limits, places: Places, layout: str, seed: int
) -> TuneResult:
    """The result with one tuple for all matmuls of a pipeline."""
    groups: dict[tuple[str, str], list[TuneRow]] = defaultdict(list)
    for row in result.rows:
        tile = LlamaCppTile.parse(row.tile)
        sizes = kernel.choices(row.problem.format, limits, tile.shader)
        variable = sizes[size_for(row.problem, sizes)].plain.variable
        if row.stock is not None:
            groups[variable, row.stock].append(row)
    table = Table.load(places.state / "tables", result.identity)
    journal = Journal(places.state / "journal")
    notes = Notes(
        journal, table, Recall((), result.identity, PROOF_VERSION), result.identity, limits, {kernel.name: kernel}
    )
    rows, said = list(result.rows), list(result.notes)
    for (variable, _), members in groups.items():
        tiles = sorted({row.tile for row in members if row.tile != row.stock})
        if len({row.tile for row in members}) < 2 or not tiles:
            continue
        best = _Joint(stand, notes, layout, seed).best(members, tiles)
        if best is None:
            said.append(f"{variable}: no one tuple is right and faster on all of its matmuls; none is kept for all")
            continue
        said.append(f"{variable}: one tuple for all of its matmuls, the fastest over all")
        rows = [best.get(row.problem, row) for row in rows]
    return _summed(replace(result, notes=tuple(said)), rows)


def _summed(result: TuneResult, rows: Sequence[TuneRow]) -> TuneResult:
    """The result with these rows, their shares and the sums over them."""
    listed: list[TuneRow] = []
    sums = []
    for m in result.ms:
        mine = [row for row in rows if row.problem.m == m]
        total = sum(row.problem.count * row.seconds for row in mine)
        listed += [replace(row, share=row.problem.count * row.seconds / total) for row in mine]
        found = model_sum(m, [row.problem for row in mine], {bare(row.problem): row for row in mine})
        left_out = next((each.missing for each in result.sums if each.m == m), 0)
        if found is not None:
            sums.append(replace(found, missing=left_out))
    return replace(result, rows=tuple(listed), sums=tuple(sums))


@dataclass(frozen=True)
class _Joint:
    """Races of tuples on the matmuls of one pipeline."""

    stand: Stand
    notes: Notes
    layout: str
    seed: int

    def best(self, rows: Sequence[TuneRow], tiles: Sequence[str]) -> dict[Problem, TuneRow] | None:
        """Rows by problem for the tuple with the best geometric mean among those faster on every matmul; kept in the
        table where they are new.
        """
        found: list[tuple[float, dict[Problem, TuneRow], dict[Problem, Proof]]] = []
        for tile in tiles:
            mine: dict[Problem, TuneRow] = {}
            proofs: dict[Problem, Proof] = {}
            for row in rows:
                measured = row if row.tile == tile and row.low > 1 else self._measure(row, tile, proofs)
                if measured is not None:
                    mine[row.problem] = measured
            if len(mine) == len(rows):
                mean = math.exp(sum(math.log(row.ratio) for row in mine.values()) / len(mine))
                found.append((mean, mine, proofs))
        if not found:
            return None
        _, chosen, proofs = max(found, key=lambda each: each[0])
        for problem, proof in proofs.items():
            self._keep(chosen[problem], proof)
        return chosen

    def _measure(self, row: TuneRow, tile: str, proofs: dict[Problem, Proof]) -> TuneRow | None:
        """The row with another tuple; None where that is wrong or not faster than the stock one."""
        problem = replace(row.problem, count=1)
        stock = row.stock or ""
        try:
            proof = self.stand.prove(tile, [problem], self.seed, 120.0)
            known = self.stand.prove(stock, [problem], self.seed, 120.0)
            if not proof.verdict.right or not known.verdict.right:
                return None
            ids = {tile: proof.verdict.binary, stock: known.verdict.binary}
            race = self.stand.race(
                problem, stock, tile, ids, JOINT_SECONDS, JOINT_ROUNDS, self.seed + 3, 300.0, fresh=True
            )
        except CandidateRejected:
            return None
        self.notes.race("final", race)
        if race.low <= 1 + race.floor:
            return None
        proofs[row.problem] = proof
        return _with(row, tile, race)

    def _keep(self, row: TuneRow, proof: Proof) -> None:
        identity = self.notes.identity
        race = row.race
        assert race is not None
        point = Point(
            m=row.problem.m,
            tile=row.tile,
            stock=row.stock or "",
            seconds=race.challenger_seconds,
            stock_seconds=race.incumbent_seconds,
            ratio=race.ratio,
            low=race.low,
            high=race.high,
            floor=race.floor,
            rounds=race.rounds,
            outcome="accept",
            reason=row.decision.reason,
            validity=Validity(identity.driver, identity.compiler, proof.artefact, PROOF_VERSION),
            measured=now(),
            run=self.notes.journal.run,
        )
        self.notes.decide(replace(row.problem, count=1), self.layout, row.tile, point)


def _with(row: TuneRow, tile: str, race: Race) -> TuneRow:
    told = Decision("accept", "faster than the stock tuple, and the fastest over all matmuls of the pipeline")
    return replace(
        row,
        tile=tile,
        seconds=race.challenger_seconds,
        stock_seconds=race.incumbent_seconds,
        ratio=race.ratio,
        low=race.low,
        high=race.high,
        floor=race.floor,
        decision=told,
        race=race,
    )
