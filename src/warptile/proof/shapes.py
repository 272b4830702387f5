"""Which shapes a proof runs: derived from the tile's own boundaries, so that they reach the tile that is served."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from warptile.contracts import UnusableInput

LEVELS = ("quick", "full")
FULL_MACS = 1 << 31


@dataclass(frozen=True, order=True)
class Shape:
    """One shape to run: y[m, n] over k, the weight rows cut into at least `slices` device buffers."""

    m: int
    n: int
    k: int
    slices: int = 1

    @property
    def macs(self) -> int:
        """Multiply-adds of one run."""
        return self.m * self.n * self.k


@dataclass(frozen=True)
class ProofPlan:
    """What to run. Random inputs on `random`, exact-integer inputs on `exact`; `refused`: shapes outside the rules."""

    random: tuple[Shape, ...]
    exact: tuple[Shape, ...]
    refused: tuple[Shape, ...] = ()


def plan(
    level: str,
    boundaries: tuple[int, int, int],
    shape: Shape,
    block_size: int,
    valid: Callable[[Shape], bool],
    own: bool = False,
) -> ProofPlan:
    """The shapes for a tile with `boundaries` (m, n, k steps) on a problem of `shape`.

    Along m and n: the step and twice the step, each -1, 0, +1, one row, and the problem's own remainder (its size cut
    down to at most two whole steps and the same remainder). Along k, in whole blocks of `block_size`: one step and a
    block either side, two steps, three steps, and the problem's own k. A shape that crosses from one weight slice to
    the next is among them.

    "quick" takes every value of every axis at least once and the corners where all axes are whole, all one short, all
    one over; "full" takes every combination. own: also the problem's full shape (where the compiled source depends
    on it), as "full" does up to 2^31 multiply-adds. valid: whether the tile's rules allow a shape; those that they do
    not allow are reported.
    Raises UnusableInput for an unknown level.
    """
    if level not in LEVELS:
        raise UnusableInput(f"proof level {level!r} is not known; levels are {', '.join(LEVELS)}")
    step_m, step_n, step_k = (max(1, step) for step in boundaries)
    ms, ns = _axis(step_m, shape.m), _axis(step_n, shape.n)
    ks = _reduction(step_k, shape.k, block_size)
    if level == "full":
        wanted = [Shape(m, n, k) for m, n, k in itertools.product(ms, ns, ks)]
        wanted += [Shape(m, n, k, 2) for m, n, k in itertools.product(ms[-2:], ns[-2:], (ks[0], shape.k))]
    else:
        wanted = _quick(step_m, step_n, ms, ns, ks, shape)
    if own or (level == "full" and shape.macs <= FULL_MACS):
        wanted.append(shape)
    return _divided(level, wanted, valid)


def _axis(step: int, own: int) -> list[int]:
    """Sizes along m or n, ascending."""
    values = {1, own if own <= 2 * step else 2 * step + own % step}
    for multiple in (step, 2 * step):
        values.update(v for v in (multiple - 1, multiple, multiple + 1) if v >= 1)
    return sorted(values)


def _reduction(step: int, own: int, block: int) -> list[int]:
    """Sizes along k in whole blocks, ascending."""
    whole = -(-step // block) * block
    values = {whole - block, whole, whole + block, 2 * whole, 3 * whole, own}
    return sorted(v for v in values if v >= block)


def _quick(step_m: int, step_n: int, ms: list[int], ns: list[int], ks: list[int], shape: Shape) -> list[Shape]:
    """Corners first, then one shape for every value no earlier shape has."""
    own_m = shape.m if shape.m <= 2 * step_m else 2 * step_m + shape.m % step_m
    own_n = shape.n if shape.n <= 2 * step_n else 2 * step_n + shape.n % step_n
    found = [
        Shape(own_m, own_n, shape.k),
        Shape(step_m, step_n, shape.k),
        Shape(step_m + 1, step_n + 1, shape.k),
        Shape(max(1, step_m - 1), max(1, step_n - 1), ks[0]),
    ]
    rest = [
        [v for v in axis if all(getattr(s, name) != v for s in found)]
        for axis, name in ((ms, "m"), (ns, "n"), (ks, "k"))
    ]
    for index in range(max(len(left) for left in rest)):
        m, n, k = (
            left[index] if index < len(left) else axis[-1 - index % len(axis)]
            for left, axis in zip(rest, (ms, ns, ks), strict=True)
        )
        found.append(Shape(m, n, k))
    return [*found, Shape(own_m, 2 * step_n + 1, ks[min(1, len(ks) - 1)], 2)]


def _divided(level: str, wanted: Iterable[Shape], valid: Callable[[Shape], bool]) -> ProofPlan:
    unique = list(dict.fromkeys(wanted))
    allowed = [s for s in unique if valid(s)]
    refused = tuple(s for s in unique if s not in set(allowed))
    exact = allowed if level == "full" else [s for i, s in enumerate(allowed) if i in (0, 2, 3) or s.slices > 1]
    return ProofPlan(tuple(allowed), tuple(exact), refused)
