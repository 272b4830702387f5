"""The loop: workload -> space -> predict -> compile -> prove -> race -> decide -> record -> serve."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from warptile import formats, search, workloads
from warptile.contracts import Kernel, Workload
from warptile.journal import Journal, entries
from warptile.kernels import for_runtime
from warptile.places import Places
from warptile.proof.version import PROOF_VERSION
from warptile.tables import Table
from warptile.tuning.budget import Budget
from warptile.tuning.notes import Notes
from warptile.tuning.order import group_problems
from warptile.tuning.recall import Recall
from warptile.tuning.result import Interrupted, Progress, TuneResult
from warptile.tuning.stand import Stand
from warptile.tuning.summary import summary
from warptile.tuning.walk import Walk


def tune(
    source: str | Path,
    device: str = "vulkan:0",
    ms: Sequence[int] = (128,),
    budget: float = 300.0,
    places: Places | None = None,
    progress: Progress | None = None,
    seed: int = 0,
    explore: bool = False,
) -> TuneResult:
    """Find, prove, race and keep the fastest tile for every matmul of a model on a device.

    source: a GGUF model, a shape file or a shipped one's name. ms: numbers of tokens to tune for. budget: seconds.
    explore: search on even where the table already holds a winner for every matmul (otherwise those are re-checked).
    Raises UnusableInput for a source, device, folder, journal or table that cannot be used, and Interrupted
    (a KeyboardInterrupt) where the user stops it; everything measured until then is in the journal.
    """
    clock = Budget(budget)
    kept = (places or Places.default()).ready()
    workload = workloads.load(source)
    from warptile.tuning.worker_stand import WorkerStand

    with contextlib.closing(WorkerStand(device, kept)) as stand:
        return tune_on(stand, workload, ms, clock, kept, progress, seed, explore)


def tune_on(
    stand: Stand,
    workload: Workload,
    ms: Sequence[int],
    budget: Budget,
    places: Places,
    progress: Progress | None = None,
    seed: int = 0,
    explore: bool = False,
    kernels: Sequence[Kernel] | None = None,
) -> TuneResult:
    """`tune` on an open stand, with `kernels` in place of all of its runtime's."""
    limits, identity = stand.describe()
    usable = for_runtime(limits.runtime) if kernels is None else kernels
    journal = Journal(places.state / "journal")
    reading = journal.read()
    table = Table.load(places.state / "tables", identity)
    recall = Recall(reading.entries, identity, PROOF_VERSION)
    notes = Notes(journal, table, recall, identity, limits, {k.name: k for k in usable})
    passes = {m: workload.problems(m) for m in ms}
    groups, unserved = group_problems(
        [p for problems in passes.values() for p in problems],
        limits,
        usable,
        lambda name: formats.by_name(name).layout.name,
    )
    walk = Walk(stand, notes, groups, limits, PROOF_VERSION, budget, search.neighbours, progress, seed)
    walk.said += [warning.text() for warning in reading.warnings]
    journal.append(entries.run("start", identity, source=workload.source, ms=list(ms), seed=seed, budget=budget.seconds))
    journal.append(entries.workload(workload, ms))
    try:
        settled = [] if explore else [p for p in walk.standings if walk.settled(p)]
        rows = {p: row for p in settled if (row := walk.recheck(p)) is not None}
        searched = [g for g in groups if not set(g.problems) <= set(rows)]
        for group in searched:
            walk.open(group)
        while (group := walk.next_group(searched)) is not None:
            walk.explore(group)
        waiting = [p for p in walk.standings if p not in rows]
        for done, problem in enumerate(waiting):
            if (row := walk.conclude(problem, len(waiting) - done)) is not None:
                rows[problem] = row
    except KeyboardInterrupt:
        journal.append(entries.run("interrupted", identity, tried=notes.tried))
        raise Interrupted(notes.tried, journal.path) from None
    journal.append(entries.run("end", identity, tried=notes.tried, rejected=notes.rejected, seconds=budget.spent()))
    return summary(workload, passes, rows, unserved, walk, notes)
