"""Which shapes a proof runs: derived from the tile's own boundaries, so that they reach the tile that is served."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from warptile.contracts import UnusableInput
from warptile.proof.special import KINDS, ZERO_ROW

LEVELS = ("quick", "full")
SHAPES_OF = {"deep": "full"}
"""The level whose shapes a level runs, where it has none of its own."""

SERVED_BEYOND = 4
"""How many times the m that was proved a table serves, see `tables.table`."""

WHOLE_MACS = {"quick": 1 << 29, "full": 1 << 33}


@dataclass(frozen=True, order=True)
class Shape:
    """One shape to run: y[m, n] over k, the weight rows in slices of `slice_rows` (0: in one)."""

    m: int
    n: int
    k: int
    slice_rows: int = 0

    @property
    def macs(self) -> int:
        """Multiply-adds of one run."""
        return self.m * self.n * self.k


@dataclass(frozen=True)
class ProofPlan:
    """What to run: random inputs on `random`, exact-integer inputs on `exact`, and `whole`.

    special: of `random`, where special inputs run. whole: the problem's own n and k, at its own m or fewer rows.
    refused: boundary shapes outside the tile's rules.
    """

    random: tuple[Shape, ...]
    exact: tuple[Shape, ...]
    whole: Shape
    refused: tuple[Shape, ...] = ()
    special: tuple[Shape, ...] = ()


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
    down to one whole step and the same remainder). Along k, in whole blocks of `block_size`: one step and a
    block either side, two steps, three steps, and the problem's own k. A shape that crosses from one weight slice to
    the next is among them. "full" adds the first primes beyond twice the m and n steps and beyond three k steps (in
    blocks), which no vector's or warp's width divides, and four times the problem's m on one step of n and k: a table
    serves a winner there too.

    "quick" takes every value of every axis at least once and the corners where all axes are whole, all one short, all
    one over, at the problem's k; "full" takes every combination. The whole problem runs at its own m, or at as many
    rows as keep it within 2^29 multiply-adds (full: 2^33); own: at its own m in any case, for a compiled source that
    depends on it. valid: whether the tile's rules allow a shape; those that they do not allow are reported.
    Raises UnusableInput for an unknown level.
    """
    if level not in LEVELS:
        raise UnusableInput(f"proof level {level!r} is not known; levels are {', '.join(LEVELS)}")
    step_m, step_n, step_k = (max(1, step) for step in boundaries)
    along_m = _Axis.of(step_m, shape.m, lambda m: valid(Shape(m, shape.n, shape.k)), level == "full")
    along_n = _Axis.of(step_n, shape.n, lambda n: valid(Shape(shape.m, n, shape.k)), level == "full")
    ks = _reduction(step_k, shape.k, block_size, level == "full")
    second = ks[min(1, len(ks) - 1)]
    if level == "full":
        wanted = [Shape(*s) for s in itertools.product(along_m.values, along_n.values, ks)]
        sliced = itertools.product(along_m.values[-2:], along_n.values[-3:], (second, shape.k))
        far = Shape(SERVED_BEYOND * shape.m, step_n, ks[0])
        wanted += [far] * (far.macs <= WHOLE_MACS[level])
    else:
        wanted = _quick(along_m, along_n, ks, shape.k)
        sliced = itertools.product((along_m.own,), (2 * step_n, 2 * step_n + 1), (second,))
    wanted += [Shape(m, n, k, step_n) for m, n, k in sliced if n > step_n]
    return _divided(level, wanted, valid, shape if own else _whole(shape, WHOLE_MACS[level], valid))


def _whole(shape: Shape, most: int, valid: Callable[[Shape], bool]) -> Shape:
    """The shape, at the most rows that stay within `most` multiply-adds and that the rules allow."""
    fitting = min(shape.m, max(1, most // (shape.n * shape.k)))
    reduced = (Shape(m, shape.n, shape.k) for m in (fitting, 1))
    return next((s for s in reduced if valid(s)), shape)


@dataclass(frozen=True)
class _Axis:
    """Sizes along m or n: the step, a size just below and above it, the problem's own remainder, and all, ascending."""

    at: int
    below: int
    above: int
    own: int
    values: tuple[int, ...]

    @staticmethod
    def of(step: int, own: int, valid: Callable[[int], bool], prime: bool = False) -> _Axis:
        """Where the rules refuse a step -1 or +1 (loads of several rows), the nearest of 2, 4, 8, 16 away joins it."""

        def near(size: int, sign: int) -> int:
            sizes = [size + sign * d for d in (1, 2, 4, 8, 16) if size + sign * d >= 1]
            return next((s for s in sizes if valid(s)), sizes[0] if sizes else 1)

        remainder = own if own <= step else step + own % step
        values = {1, remainder}
        for size in (step, 2 * step):
            values |= {size, near(size, -1), near(size, 1), max(1, size - 1), size + 1}
        if prime:
            values.add(next_prime(2 * step + 1))
        return _Axis(step, near(step, -1), near(step, 1), remainder, tuple(sorted(values)))


def next_prime(after: int) -> int:
    """The smallest prime above `after`."""
    n = max(2, after + 1)
    while any(n % d == 0 for d in range(2, int(n**0.5) + 1)):
        n += 1
    return n


def _reduction(step: int, own: int, block: int, prime: bool = False) -> list[int]:
    """Sizes along k in whole blocks, ascending."""
    whole = -(-step // block) * block
    values = {whole - block, whole, whole + block, 2 * whole, 3 * whole, own}
    if prime:
        values.add(next_prime(3 * whole // block) * block)
    return sorted(v for v in values if v >= block)


def _quick(along_m: _Axis, along_n: _Axis, ks: list[int], own_k: int) -> list[Shape]:
    """Corners first, then one shape for every value no earlier shape has."""
    found = [
        Shape(along_m.own, along_n.own, own_k),
        Shape(along_m.at, along_n.at, own_k),
        Shape(along_m.above, along_n.above, own_k),
        Shape(along_m.below, along_n.below, ks[0]),
    ]
    shorter = [k for k in ks if k != own_k] or ks
    axes: list[tuple[str, Sequence[int]]] = [("m", along_m.values), ("n", along_n.values), ("k", shorter)]
    rest = [[v for v in values if all(getattr(s, name) != v for s in found)] for name, values in axes]
    for index in range(max(len(left) for left in rest)):
        found.append(
            Shape(
                *(
                    left[index] if index < len(left) else values[-1 - index % len(values)]
                    for left, (_, values) in zip(rest, axes, strict=True)
                )
            )
        )
    return found


def _divided(level: str, wanted: Iterable[Shape], valid: Callable[[Shape], bool], whole: Shape) -> ProofPlan:
    unique = list(dict.fromkeys(wanted))
    allowed = [s for s in unique if valid(s)]
    refused = tuple(s for s in unique if s not in set(allowed))
    exact = allowed if level == "full" else [s for s in allowed if s in unique[:4] or s.slice_rows]
    return ProofPlan(tuple(allowed), tuple(exact), whole, refused, _special(allowed))


def _special(allowed: Sequence[Shape]) -> tuple[Shape, ...]:
    """The smallest shape with a row of every kind; where none has, the one of most rows."""
    enough = [s for s in allowed if s.m >= KINDS and s.n > ZERO_ROW] or sorted(allowed, key=lambda s: -s.m)[:1]
    return tuple(sorted(enough, key=lambda s: s.macs)[:1])
