"""Local refinement: the tiles next to one tile."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from warptile.contracts import Kernel, Limits, Problem, Tile


def neighbours(kernel: Kernel, tile: Tile, problem: Problem, limits: Limits) -> Iterator[Tile]:
    """Valid tiles that differ from `tile` in one field, or in two that move against or with each other.

    A number moves to the next value that the kernel's space uses for that field, below and above; a word to each of
    the space's others. Two fields move together because a tile's products (warps times warp tile = block) rarely
    survive one change. `tile` itself is left out; order is deterministic, one-field changes first.
    """
    steps = _steps(tile, list(kernel.space(problem, limits)))
    single = [{name: value} for name, values in steps.items() for value in values]
    names = list(steps)
    double = [
        {one: a, two: b}
        for i, one in enumerate(names)
        for two in names[i + 1 :]
        for a in steps[one]
        for b in steps[two]
    ]
    for change in [*single, *double]:
        changed = dataclasses.replace(tile, **change)
        if not kernel.broken_rules(changed, problem, limits):
            yield changed


def _steps(tile: Tile, space: list[Tile]) -> dict[str, list[int | str]]:
    steps: dict[str, list[int | str]] = {}
    rows = [t.fields() for t in space]
    for name, current in tile.fields().items():
        used = {row[name] for row in rows}
        if isinstance(current, int):
            numbers = sorted(value for value in used if isinstance(value, int))
            below = [value for value in numbers if value < current][-1:]
            above = [value for value in numbers if value > current][:1]
            steps[name] = [*below, *above]
        else:
            steps[name] = [value for value in sorted(map(str, used)) if value != current]
    return {name: values for name, values in steps.items() if values}
