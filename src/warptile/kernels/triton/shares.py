"""How the programs of a launch share tiles of which their number is no multiple."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shares:
    """Programs of a launch, of which `sharers` share the steps of `rest` tiles; the other tiles are whole, as many a
    program."""

    programs: int
    rest: int
    sharers: int


def shared_evenly(tiles: int, steps: int, programs: int, rest: int, parts: int = 0) -> Shares:
    """How so many programs at most share tiles of so many steps each: no step of a share is empty.

    rest: 0 all tiles are shared; 1 only those that full rounds of whole ones leave; 2 those and one more round. parts:
    how many programs may share a tile at most, 0 for any number.
    """
    programs = min(programs, tiles * steps)
    rounds = max(0, tiles // programs + 1 - rest) if rest else 0
    left = tiles - rounds * programs
    sharers = max(1, min(programs, left * min(steps, parts or steps)))
    return Shares(programs if rounds else sharers, left, sharers)
