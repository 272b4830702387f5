"""From rows to the result of a tune: shares, sums, notes, what to run next."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from warptile.contracts import Problem, Workload
from warptile.tuning.result import Hint, TuneResult, TuneRow, bare, model_sum
from warptile.tuning.state import State


def summary(
    workload: Workload,
    passes: Mapping[int, Sequence[Problem]],
    unserved: Sequence[tuple[Problem, str]],
    state: State,
) -> TuneResult:
    """The result. A row appears once for each m whose pass asks for it, with that pass's count and its share of it.

    share: count * seconds over the sum of them over the pass.
    """
    rows, notes = state.rows, state.notes
    listed: list[TuneRow] = []
    for problems in passes.values():
        mine = [(p, rows[bare(p)]) for p in problems if bare(p) in rows]
        total = sum(p.count * row.seconds for p, row in mine)
        listed += [
            dataclasses.replace(row, problem=p, share=p.count * row.seconds / total if total else 0.0)
            for p, row in mine
        ]
    sums = [model_sum(m, problems, rows) for m, problems in passes.items()]
    known = {problem for problem, _ in unserved}
    late = [(p, "the budget ended before it was measured") for p in state.standings if p not in rows and p not in known]
    rechecked = bool(listed) and all(row.reuse == "rechecked" for row in listed)
    open_ones = [row for row in listed if row.decision.outcome == "undecided"]
    again = ("tune", workload.source)
    first: tuple[Hint, ...] = ()
    if rechecked:
        first = (Hint((*again, "--explore"), "searches on from these winners"),)
    elif late or open_ones:
        first = (Hint((*again, "--budget", f"{2 * state.budget.seconds:.0f}s"), "resumes with more time"),)
    elif listed:
        first = (Hint(again, "re-checks these winners in seconds"),)
    hints = (
        *first,
        Hint(("table", "show"), "what is served on this device"),
        Hint(("journal", "list"), "what was tried"),
    )
    return TuneResult(
        name=workload.name,
        source=workload.source,
        identity=notes.identity,
        ms=tuple(passes),
        rows=tuple(listed),
        sums=tuple(s for s in sums if s is not None),
        unserved=(*unserved, *late),
        unsupported=workload.unsupported,
        table=notes.table.path,
        journal=notes.journal.path,
        seconds=state.budget.spent(),
        tried=notes.tried,
        proving=notes.proving,
        rejected=notes.rejected,
        recalled=notes.recall.used,
        notes=tuple(state.said),
        hints=hints,
    )
