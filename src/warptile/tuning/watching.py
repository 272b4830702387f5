"""Instrumented runs of the tiles that are about to be kept."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from warptile.contracts import DeviceLost, OutOfMemory, Problem, Timeout, Wrong
from warptile.tuning.state import LEAST_STEP_S, State

SHARE = 0.1
"""Of the budget, for all watching together."""

FIRST_S = 3.0
DEADLINE_S = 60.0


@runtime_checkable
class Watcher(Protocol):
    """A stand that can run checked builds."""

    def watch(self, tile: str, problem: Problem, seed: int, deadline: float) -> str:
        """Why a checked build of a tile says nothing, "" where it is sound. Raises Wrong where a fault was found."""
        ...


def watch(state: State, problem: Problem, text: str) -> None:
    """Have a tile watched before its final race, once a binary. Raises Wrong where a fault is found.

    Not asked where the stand cannot, or where it would take more than a tenth of the budget, or of what is left of it
    more than a half. An instrumented run that does not come back is no fault of the tile; a person is told.
    """
    stand, budget = state.stand, state.budget
    source, cost = state.notes.source_of(text, problem), budget.expect("watch", FIRST_S)
    if not isinstance(stand, Watcher):
        return
    if (known := state.watched.get(source)) is not None:
        raise known
    if source in state.watched:
        return
    if (len(state.watched) + 1) * cost > SHARE * budget.seconds or 2 * cost + LEAST_STEP_S > budget.left():
        return
    state.watched[source] = None
    state.tell("prove", f"{problem.text()}  watching {text}")
    try:
        with budget.step("watch"):
            unsaid = stand.watch(text, problem, state.seed, min(DEADLINE_S, budget.left()))
    except Wrong as fault:
        state.watched[source] = fault
        raise
    except (Timeout, DeviceLost, OutOfMemory) as error:
        unsaid = str(error)
    if unsaid:
        state.said.append(f"{problem.text()}: {text}: no instrumented run: {unsaid}")
