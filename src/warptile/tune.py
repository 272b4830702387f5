"""The loop: workload -> space -> predict -> compile -> prove -> race -> decide -> record -> serve."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from warptile import formats, workloads
from warptile.contracts import Kernel, Workload
from warptile.contracts.samples import sample_type
from warptile.journal import Asked, Journal, entries, warning_lines
from warptile.kernels import for_runtime
from warptile.places import Places
from warptile.proof.version import PROOF_VERSION
from warptile.tables import Table
from warptile.tuning.budget import Budget
from warptile.tuning.conclude import conclude, recheck
from warptile.tuning.explore import explore, next_group, open_group, play_off, ready_stock
from warptile.tuning.history import past_of
from warptile.tuning.notes import Notes
from warptile.tuning.order import group_problems
from warptile.tuning.recall import Recall
from warptile.tuning.result import Interrupted, Progress, TuneResult
from warptile.tuning.stand import Named, Stand
from warptile.tuning.state import State
from warptile.tuning.summary import summary
from warptile.workloads.experts import routed
from warptile.workloads.joined import as_served


def layout_name(format_name: str) -> str:
    """The name of a format's layout."""
    return formats.by_name(format_name).layout.name


def tune(
    source: str | Path,
    device: str = "vulkan:0",
    ms: Sequence[int] = (128,),
    budget: float = 300.0,
    places: Places | None = None,
    progress: Progress | None = None,
    seed: int = 0,
    explore_on: bool = False,
    dtype: str | None = None,
    routing: str | None = None,
    asked: Asked | None = None,
    history: bool = True,
) -> TuneResult:
    """Find, prove, race and keep the fastest tile for every matmul of a model on a device.

    source: a GGUF model, a shape file or a shipped one's name; of a model, on a card, weights that `load` joins are
    tuned as one matrix. ms: numbers of tokens to tune for. budget: seconds.
    explore_on: search on even where the table already holds a winner for every matmul (otherwise those are re-checked).
    dtype: type of x and y, "fp32", "fp16" or "bf16"; default the device's own (`Limits.activations`).
    routing: how tokens spread over a model's experts, as `workloads.experts` has it, or a JSON file of their counts;
    default uniformly. It is part of what the table holds a winner for. asked: for the journal, who asked and why.
    history: prices are corrected by what the journal holds of this device, so that fewer tiles are measured; False:
    by this run's measurements alone. What is kept is proved and raced either way.
    Memory stays below four times the largest weight and 500 MB, both processes together; on a card each of the 16
    processes at most that compile takes 350 MB more.
    Raises UnusableInput for a source, device, folder, journal or table that cannot be used, and Interrupted
    (a KeyboardInterrupt) where the user stops it; everything measured until then is in the journal.
    """
    clock = Budget(budget)
    kept = (places or Places.default()).ready()
    workload = as_served(workloads.load(source), device)
    if routing is not None:
        workload = routed(workload, routing)
    from warptile.tuning.worker_stand import WorkerStand

    with contextlib.closing(WorkerStand(device, kept, workload)) as stand:
        return tune_on(
            stand, workload, ms, clock, kept, progress, seed, explore_on, dtype=dtype, asked=asked, history=history
        )


def tune_on(
    stand: Stand,
    workload: Workload,
    ms: Sequence[int],
    budget: Budget,
    places: Places,
    progress: Progress | None = None,
    seed: int = 0,
    explore_on: bool = False,
    kernels: Sequence[Kernel] | None = None,
    dtype: str | None = None,
    layout_of: Callable[[str], str] = layout_name,
    asked: Asked | None = None,
    history: bool = True,
) -> TuneResult:
    """`tune` on an open stand, with `kernels` in place of all of its runtime's.

    layout_of: what the table keeps a format's winners under.
    """
    limits, identity = stand.describe()
    usable = for_runtime(limits.runtime) if kernels is None else kernels
    journal = Journal(places.state / "journal")
    reading = journal.read()
    table = Table.load(places.state / "tables", identity)
    recall = Recall(reading.entries, identity, PROOF_VERSION)
    told = asked or Asked("tune")
    uuid = stand.uuid() if isinstance(stand, Named) else ""
    notes = Notes(journal, table, recall, identity, limits, {k.name: k for k in usable}, told, reading.entries, uuid)
    kind = sample_type(dtype, limits.activations)
    passes = {m: tuple(replace(p, x_dtype=kind, y_dtype=kind) for p in workload.problems(m)) for m in ms}
    groups, unserved = group_problems(
        [p for problems in passes.values() for p in problems],
        limits,
        usable,
        layout_of,
    )
    past = past_of(reading.entries, identity, limits, notes.parse, notes.source_of) if history else []
    state = State(stand, notes, groups, limits, budget, progress, seed, past)
    state.said += warning_lines(reading.warnings)
    notes.record.start(source=workload.source, ms=list(ms), seed=seed, budget=budget.seconds)
    journal.append(entries.workload(workload, ms))
    try:
        if recall.ceilings is None:
            journal.append(entries.ceilings(identity, limits, stand.ceilings()))
        for problem in [] if explore_on else state.settled():
            recheck(state, problem)
        ready_stock(state)
        for group in groups:
            open_group(state, group)
        while (chosen := next_group(state)) is not None:
            explore(state, chosen)
        for problem in state.waiting():
            play_off(state, problem)
            conclude(state, problem)
    except KeyboardInterrupt:
        notes.record.end("interrupted", tried=notes.tried)
        raise Interrupted(notes.tried, journal.path) from None
    notes.record.end(tried=notes.tried, rejected=notes.rejected, seconds=budget.spent(), searched=state.searched())
    return summary(workload, passes, unserved, state)


class _Callable(types.ModuleType):
    """Importing a submodule binds its name in the package, so `warptile.tune` is this module and must be callable."""

    __call__ = staticmethod(tune)


sys.modules[__name__].__class__ = _Callable
