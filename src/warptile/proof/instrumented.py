"""Instrumented runs of a candidate: its own kernel, watched while it runs, and run in other orders.

"checked" builds report what no output shows: an access outside a buffer, a missing barrier that this device's order
forgave, shared memory read before it was written, an element written twice. "delayed" builds run the same launches in
other orders and at other speeds; every byte of y must stay the same.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile import formats
from warptile.contracts import (
    CandidateRejected,
    CompileFailed,
    DoesNotFit,
    Instrument,
    InstrumentedRuntime,
    InvalidTile,
    Kernel,
    Problem,
    Runtime,
    Tile,
    Timeout,
    Verdict,
)
from warptile.kernels import arrangement_of
from warptile.layouts import PackedWeights, pack_experts
from warptile.proof import checks, groups
from warptile.proof.checks import Finding
from warptile.proof.references import ReferenceCache, Wanted
from warptile.proof.runs import ChosenRows, Real, run
from warptile.proof.shapes import Shape, plan

SHAPES = {"winner": 1, "full": 2, "deep": 6}
"""Shapes that are watched, by level; the smallest that leave the first tile along m and n. "winner" is no level of
`prove`: it is asked of a tile that is about to be kept."""

ORDERS = {"winner": 1, "full": 3, "deep": 12}
"""Other orders that the largest of them runs in, by level."""


def instrumented(
    runtime: Runtime,
    kernel: Kernel,
    tile: Tile,
    problem: Problem,
    level: str = "full",
    seed: int = 0,
    cache: ReferenceCache | None = None,
    deadline: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    instruments: Collection[Instrument] = ("checked", "delayed"),
) -> Finding | None:
    """What instrumented builds of a tile find on a problem: a `Finding` named "outside", "barrier", "race",
    "uninitialised", "once", "launch" or "schedule", or one of the other checks of a run.

    Nothing at levels that `SHAPES` does not name, and on a runtime without instruments. deadline: seconds from now.
    instruments: which to run, of those that the runtime has.
    Raises what `prove` raises, InvalidTile where no boundary shape is allowed, DoesNotFit where none can be watched:
    more shared memory or workgroups than the notes have room for, more than 1024 invocations, loops that a software
    driver ends; CompileFailed where an instrument cannot follow the kernel or the driver refuses what it made of it.
    """
    if level not in SHAPES or not isinstance(runtime, InstrumentedRuntime):
        return None
    return _watch(runtime, kernel, tile, problem, level, seed, cache, deadline, clock, instruments)[0]


def _watch(
    runtime: InstrumentedRuntime,
    kernel: Kernel,
    tile: Tile,
    problem: Problem,
    level: str,
    seed: int,
    cache: ReferenceCache | None,
    deadline: float | None,
    clock: Callable[[], float],
    instruments: Collection[Instrument],
) -> tuple[Finding | None, int]:
    """(what was found, shapes that a checked build ran)."""
    end = None if deadline is None else clock() + deadline
    cases = list(_cases(runtime, kernel, tile, problem, SHAPES[level], seed, cache or ReferenceCache()))
    if not cases:
        raise InvalidTile("a boundary shape is within the tile's rules", tile.text())
    unseen: list[CandidateRejected] = []
    for case in cases if "checked" in runtime.instruments and "checked" in instruments else []:
        if end is not None and clock() > end:
            what = f"the proof passed its deadline of {deadline} s before instrumented {case.name}"
            raise Timeout(f"{tile.text()}: {what}")
        try:
            finding = case.checked(runtime, kernel, tile, seed)
        except (DoesNotFit, CompileFailed) as error:
            unseen.append(error)
            continue
        if finding is not None:
            return finding, 0
    if "delayed" in runtime.instruments and "delayed" in instruments:
        finding = cases[-1].reordered(runtime, kernel, tile, range(seed, seed + ORDERS[level]))
        if finding is not None:
            return finding, 0
    if unseen and len(unseen) == len(cases):
        raise unseen[0]
    return None, len(cases) - len(unseen)


def watched(
    verdict: Verdict,
    runtime: Runtime,
    kernel: Kernel,
    tile: Tile,
    problem: Problem,
    cache: ReferenceCache,
    seconds: float | None,
) -> Verdict:
    """A verdict after instrumented runs at its level: wrong where they find something, else it says what ran."""
    level = verdict.level
    if not verdict.right or level not in SHAPES or not isinstance(runtime, InstrumentedRuntime):
        return verdict
    seed = verdict.seeds[0] if verdict.seeds else 0
    both: tuple[Instrument, ...] = ("checked", "delayed")
    try:
        finding, shapes = _watch(runtime, kernel, tile, problem, level, seed, cache, seconds, time.monotonic, both)
    except (InvalidTile, CompileFailed) as error:
        return _saying(verdict, f"no instrumented run: {error}")
    ran = checks.CHECKED * ("checked" in runtime.instruments) + checks.DELAYED * ("delayed" in runtime.instruments)
    verdict = dataclasses.replace(verdict, checks=(*verdict.checks, *ran))
    if finding is not None:
        return dataclasses.replace(verdict, right=False, failed=finding.check, detail=finding.detail)
    return _saying(verdict, f"checked builds of {shapes} shapes, {ORDERS[level]} orders of a delayed one")


def _saying(verdict: Verdict, text: str) -> Verdict:
    return dataclasses.replace(verdict, detail="; ".join(part for part in (verdict.detail, text) if part))


@dataclass(frozen=True)
class _Case:
    """One problem with its inputs."""

    name: str
    problem: Problem
    x: Real
    packed: PackedWeights
    chosen: ChosenRows | None

    def checked(self, runtime: Runtime, kernel: Kernel, tile: Tile, seed: int) -> Finding | None:
        """What a checked build reports."""
        source = kernel.source(tile, self.problem, runtime.limits())
        binary = runtime.compile(source, "checked")
        done = run(runtime, kernel, tile, self.problem, binary, self.x, self.packed, False, self.chosen, seed)
        return self._placed(done.finding)

    def reordered(self, runtime: Runtime, kernel: Kernel, tile: Tile, seeds: range) -> Finding | None:
        """What differs between the plain build's y and those of a delayed build."""
        source = kernel.source(tile, self.problem, runtime.limits())
        plain = run(
            runtime, kernel, tile, self.problem, runtime.compile(source), self.x, self.packed, False, self.chosen
        )
        if plain.finding is not None:
            return self._placed(plain.finding)
        binary = runtime.compile(source, "delayed")
        for seed in seeds:
            done = run(runtime, kernel, tile, self.problem, binary, self.x, self.packed, False, self.chosen, seed)
            finding = done.finding or checks.unscheduled(plain.y, done.y, seed)
            if finding is not None:
                return self._placed(finding)
        return None

    def _placed(self, finding: Finding | None) -> Finding | None:
        if finding is None:
            return None
        p = self.problem
        where = f"instrumented, {self.name}: m={p.m} n={p.n} k={p.k}"
        return Finding(finding.check, f"{finding.detail} ({where})", finding.first_wrong)


def _cases(
    runtime: Runtime, kernel: Kernel, tile: Tile, problem: Problem, count: int, seed: int, cache: ReferenceCache
) -> Iterator[_Case]:
    """The `count` cheapest boundary shapes that leave the first tile, in order of cost."""
    if problem.grouped:
        yield from _grouped(runtime, kernel, tile, problem, count, seed, cache)
        return
    limits = runtime.limits()
    fmt = formats.by_name(problem.format)

    def at(shape: Shape) -> Problem:
        return Problem(problem.format, shape.n, shape.k, shape.m, problem.x_dtype, problem.y_dtype)

    def allowed(shape: Shape) -> bool:
        return not kernel.broken_rules(tile, at(shape), limits)

    steps = kernel.boundaries(tile)
    todo = plan("full", steps, Shape(problem.m, problem.n, problem.k), fmt.block_size, allowed)
    # Three steps along k: what a step leaves in shared memory is overwritten by the next, and by the one after.
    longest = max(3 * max(1, steps[2]), 2 * fmt.block_size)
    beyond = [s for s in todo.random if s.n > steps[1] and s.m > steps[0] and s.k <= longest and s.k > steps[2]]
    chosen = sorted(beyond or todo.random, key=lambda s: (s.macs, s))
    for shape in _spread(chosen, count):
        wanted = Wanted(fmt, shape.k, "random", seed, problem.x_dtype, 24)
        case = cache.case(wanted, shape.m, shape.n)
        packed = cache.packed(wanted, case, shape.slice_rows, arrangement_of(kernel, limits))
        yield _Case(str(shape.slice_rows or "dense"), at(shape), case.x, packed, None)


def _spread(shapes: list[Shape], count: int) -> list[Shape]:
    """`count` of them, from the first to the middle: the second half costs most and shows the same."""
    if len(shapes) <= count:
        return shapes
    picked = np.unique(np.linspace(0, len(shapes) // 2, count).astype(int))
    return [shapes[i] for i in picked]


def _grouped(
    runtime: Runtime, kernel: Kernel, tile: Tile, problem: Problem, count: int, seed: int, cache: ReferenceCache
) -> Iterator[_Case]:
    limits = runtime.limits()
    fmt = formats.by_name(problem.format)

    def allowed(shape: groups.GroupedShape) -> bool:
        return shape.parts == 1 and not kernel.broken_rules(tile, shape.of(problem), limits)

    shapes, _, _ = groups.plan("quick", kernel.boundaries(tile), problem, fmt.block_size, seed, allowed)
    for shape in sorted(shapes, key=lambda s: s.ids.size * s.n * s.k)[-count:]:
        own = shape.of(problem)
        wanted = Wanted(fmt, shape.k, "random", seed, problem.x_dtype, 24)
        case = cache.case(wanted, own.x_rows, shape.experts * shape.n)
        flat = np.ascontiguousarray(case.blocks.reshape(shape.experts, shape.n, -1))
        packed = pack_experts(fmt, flat, shape.experts, shape.n, shape.k, limits.max_buffer_bytes, limits.arrangement)
        yield _Case(
            shape.name, own, case.x, packed, ChosenRows(np.ascontiguousarray(shape.ids), _weights(own, shape, seed))
        )


def _weights(problem: Problem, shape: groups.GroupedShape, seed: int) -> NDArray[Any] | None:
    if not problem.summed:
        return None
    return np.random.default_rng(seed).uniform(-1, 1, shape.ids.shape).astype(np.float32)
