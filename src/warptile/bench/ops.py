"""Paired measurements of every matmul of a workload: what the table serves against the stock tile."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from warptile import formats
from warptile.contracts import (
    CandidateRejected,
    Ceilings,
    Identity,
    Kernel,
    Limits,
    Problem,
    Race,
    Workload,
    Wrong,
)
from warptile.contracts.samples import sample_type
from warptile.journal import Journal, entries, to_json
from warptile.proof.version import PROOF_VERSION
from warptile.roofline import floor_seconds
from warptile.search import rank
from warptile.tables import Table
from warptile.tuning.budget import Budget
from warptile.tuning.notes import source_hash
from warptile.tuning.order import stock_tile
from warptile.tuning.result import bare
from warptile.tuning.stand import Stand

ROUNDS = 40
LEAST_S = 1.0
PROVE_DEADLINE_S = 90.0


@dataclass(frozen=True)
class OpRow:
    """One matmul. tile: what is served; status: "tuned", "stale", "untuned". race: it against stock; None where the
    served tile is the stock or there is none (`stock` is then None or equal to `tile`).

    seconds: median; spread: interquartile range over median. gflops: 2 m n k / seconds / 1e9. ceiling_share: the
    shortest time the device's measured ceilings allow over seconds; the shortest is the larger of FLOP / (FLOP/s)
    and (bytes of w, x, y) / (bytes/s).
    """

    problem: Problem
    stock: str | None
    tile: str
    status: str
    stock_seconds: float | None
    seconds: float
    spread: float
    gflops: float
    ceiling_share: float
    race: Race


@dataclass(frozen=True)
class OpsReport:
    """A bench. geomean: of stock / served seconds over the rows, [low, high] from the rows' own intervals.

    left_out: problems without a row, each with the reason.
    """

    name: str
    identity: Identity
    ceilings: Ceilings
    rows: tuple[OpRow, ...]
    left_out: tuple[tuple[Problem, str], ...]

    @property
    def geomean(self) -> tuple[float, float, float] | None:
        """(middle, low, high); None without rows."""
        if not self.rows:
            return None
        logs = [[math.log(max(v, 1e-9)) for v in (r.race.ratio, r.race.low, r.race.high)] for r in self.rows]
        return tuple(math.exp(sum(column) / len(column)) for column in zip(*logs, strict=True))  # type: ignore[return-value]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        value: dict[str, Any] = to_json(self)
        value["geomean"] = to_json(self.geomean)
        return value


def bench_ops(
    stand: Stand,
    workload: Workload,
    ms: Sequence[int],
    kernels: Sequence[Kernel],
    table: Table,
    journal: Journal,
    budget: Budget,
    progress: Callable[[str], None] | None = None,
    seed: int = 0,
    dtype: str | None = None,
) -> OpsReport:
    """Prove and race, on every problem of the workload at every m, the served tile against the stock.

    Served is what the table holds, else the best-priced valid tile. Where both are the same tile it is raced against
    itself. Races are written to the journal as stage "bench"; the table is left as it is. dtype: of x and y, default
    the device's own.
    """
    limits, identity = stand.describe()
    ceilings = stand.ceilings()
    kind = sample_type(dtype, limits.activations)
    asked = (replace(p, x_dtype=kind, y_dtype=kind) for m in ms for p in workload.problems(m))
    problems = list(dict.fromkeys(bare(p) for p in asked))
    rows: list[OpRow] = []
    left_out: list[tuple[Problem, str]] = []
    for done, problem in enumerate(problems):
        seconds = max(LEAST_S, budget.left() / (1.5 * (len(problems) - done)))
        try:
            row = _row(stand, problem, limits, kernels, table, ceilings, seconds, seed, progress)
        except CandidateRejected as error:
            left_out.append((problem, str(error)))
            continue
        if row is None:
            left_out.append((problem, "no kernel here has a valid tile for it"))
            continue
        rows.append(row)
        tiles = (row.race.incumbent.tile, row.race.challenger.tile)
        first, second = (_source(kernels, text, problem, limits) for text in tiles)
        journal.append(entries.race(identity, "bench", row.race, (first, second)))
    return OpsReport(workload.name, identity, ceilings, tuple(rows), tuple(left_out))


def _row(
    stand: Stand,
    problem: Problem,
    limits: Limits,
    kernels: Sequence[Kernel],
    table: Table,
    ceilings: Ceilings,
    seconds: float,
    seed: int,
    progress: Callable[[str], None] | None,
) -> OpRow | None:
    served = table.lookup(problem, formats.by_name(problem.format).layout.name, PROOF_VERSION)
    stock = stock_tile(problem, limits, kernels)
    if served is not None:
        tile, status = served.tile, served.status
    else:
        ranked = rank(problem, limits, kernels)
        if not ranked:
            return None
        tile, status = ranked[0].tile.text(), "untuned"
    incumbent = stock[1].text() if stock is not None else tile
    if progress is not None:
        progress(f"{problem.text()}  {tile}")
    proved = {}
    for text in {tile: None, incumbent: None}:
        verdict = stand.prove(text, [problem], seed, PROVE_DEADLINE_S).verdict
        if not verdict.right:
            raise Wrong(f"{text} failed its proof: {verdict.failed}: {verdict.detail}")
        proved[text] = verdict.binary
    race = stand.race(problem, incumbent, tile, proved, seconds, ROUNDS, seed, 60.0 + 10 * seconds)
    samples = np.asarray(race.challenger_samples or (race.challenger_seconds,))
    low, high = np.quantile(samples, [0.25, 0.75])
    took = race.challenger_seconds
    return OpRow(
        problem=problem,
        stock=incumbent if stock is not None else None,
        tile=tile,
        status=status,
        stock_seconds=race.incumbent_seconds if stock is not None else None,
        seconds=took,
        spread=float((high - low) / took),
        gflops=problem.flops / took / 1e9,
        ceiling_share=floor_seconds(problem, ceilings) / took,
        race=race,
    )


def _source(kernels: Sequence[Kernel], text: str, problem: Problem, limits: Limits) -> str:
    kernel = next(k for k in kernels if k.name == text.split(":", 1)[0])
    return source_hash(kernel.source(kernel.tile_type.parse(text), problem, limits))
