"""The proof of one candidate: is every output element right, written, deterministic, in bounds, by the right binary."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from warptile import formats
from warptile.contracts import (
    Arithmetic,
    Binary,
    DoesNotFit,
    InvalidTile,
    Kernel,
    Problem,
    Runtime,
    Tile,
    Timeout,
    UnusableInput,
    Verdict,
)
from warptile.formats import Format
from warptile.kernels import arrangement_of
from warptile.proof import checks
from warptile.proof.bounds import ACTIVATION_BLOCKS, Unbounded, element_bound
from warptile.proof.checks import DIRECT, Finding
from warptile.proof.decoders import decoded
from warptile.proof.exact import SIGNIFICANT_BITS
from warptile.proof.grouped import prove_grouped
from warptile.proof.instrumented import watched
from warptile.proof.references import EXACT_BITS, PERIOD, Case, Kind, ReferenceCache, Wanted
from warptile.proof.runs import Real, repeat, run
from warptile.proof.shapes import SHAPES_OF, Shape, plan
from warptile.proof.special import wild_rows
from warptile.proof.version import PROOF_VERSION

PERIODS_AT_ONCE = 64
REPEATS = {"quick": 30, "full": 300, "deep": 1000}
"""Runs that must be equal where the compiled code has a hazard, by level."""


def prove(
    runtime: Runtime,
    kernel: Kernel,
    tile: Tile,
    problem: Problem,
    level: str = "quick",
    seed: int = 0,
    blocks: NDArray[np.uint8] | None = None,
    *,
    deadline: float | None = None,
    cache: ReferenceCache | None = None,
    seen: set[object] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """Prove a tile on a device, for a problem.

    level: "quick", "full" (see `shapes.plan`) or "deep" (as "full", for what else is asked at that level). seed: of
    every input; the verdict names it. blocks: rows of a real tensor at the problem's k, u8[rows, row bytes], proved
    beside drawn weights (of a dense problem). deadline: seconds from now, asked for before each shape. cache:
    references shared between tiles; without one they are computed for this call. seen: what earlier calls on the same
    device found right, by binary, shape and inputs; it is not run again, and what this call finds right is added.

    Raises InvalidTile or DoesNotFit where the tile breaks a rule on the problem, UnusableInput for an unknown level,
    Timeout past the deadline, and what the runtime raises (CompileFailed, DeviceLost, OutOfMemory). A wrong result
    raises nothing: the verdict says which check spoke ("bound", too, for an arithmetic that has no error bound).

    A runtime may name a hazard of a binary (`runtime.hazards`: code that an assembler's fault makes wrong now and
    then); such a binary is right only after `REPEATS` runs of the largest shape that are equal in every byte, and the
    verdict's detail says so.
    """
    proof = ShapeProof(runtime, kernel, tile, problem, seed, ReferenceCache() if cache is None else cache)
    end = None if deadline is None else clock() + deadline
    own = Shape(problem.m, problem.n, problem.k)
    proof.refuse_invalid()
    if problem.grouped:
        grouped = prove_grouped(
            runtime, kernel, tile, problem, level, seed, deadline=deadline, cache=cache, clock=clock
        )
        left = None if end is None else end - clock()
        return watched(grouped, runtime, kernel, tile, problem, proof.cache, left)
    binary = proof.compiled(own)
    fmt = formats.by_name(problem.format)
    todo = plan(
        SHAPES_OF.get(level, level),
        kernel.boundaries(tile),
        own,
        fmt.block_size,
        proof.allowed,
        own=proof.shape_dependent(),
    )
    cases: list[tuple[Kind, Shape]] = [("random", s) for s in todo.random]
    cases += [("exact", s) for s in todo.exact]
    if blocks is not None:
        cases.append(("real", _real_shape(problem, blocks, todo.random)))
    cases += [("special", s) for s in todo.special if kernel.arithmetic(tile, problem).special]
    cases.append(("whole", todo.whole))
    proof.expect(cases)
    finding = proof.cache.decoded(fmt, seed) or (_decoded_real(fmt, blocks))
    finding = finding or _reached(proof, binary, kernel.boundaries(tile), [shape for _, shape in cases])
    for kind, shape in cases:
        if finding is not None:
            break
        if end is not None and clock() > end:
            raise Timeout(f"{tile.text()}: the proof passed its deadline of {deadline} s before {shape}")
        finding = proof.prove_shape(kind, shape, blocks if kind == "real" else None, seen)
    said = [f"{len(todo.refused)} boundary shapes are outside the tile's rules"] if todo.refused else []
    if finding is None and (hazard := proof.hazard(binary)):
        finding = proof.prove_unwavering(hazard, todo.whole, REPEATS[level])
        said.append(f"{hazard}: accepted on {REPEATS[level]} runs equal in every byte")
    verdict = Verdict(
        right=finding is None,
        checks=DIRECT,
        failed=finding.check if finding else "",
        detail=finding.detail if finding else "; ".join(said),
        first_wrong=finding.first_wrong if finding else None,
        shapes=tuple(proof.shapes),
        nmse=proof.nmse,
        worst_ratio=proof.worst_ratio,
        binary=binary.id,
        seeds=(seed,),
        level=level,
        version=PROOF_VERSION,
    )
    return watched(verdict, runtime, kernel, tile, problem, proof.cache, None if end is None else end - clock())


@dataclass
class ShapeProof:
    """What the shapes of one proof share."""

    runtime: Runtime
    kernel: Kernel
    tile: Tile
    problem: Problem
    seed: int
    cache: ReferenceCache
    largest: dict[tuple[Kind, int], tuple[int, int]] = field(default_factory=dict)
    shapes: dict[tuple[int, int, int], None] = field(default_factory=dict)
    nmse: float = 0.0
    worst_ratio: float = 0.0

    def at(self, shape: Shape) -> Problem:
        """The problem at another shape."""
        p = self.problem
        return Problem(p.format, shape.n, shape.k, shape.m, p.x_dtype, p.y_dtype)

    def expect(self, cases: list[tuple[Kind, Shape]]) -> None:
        """Note the largest m and n of each kind and k, so that a reference is computed once for all of them."""
        for kind, shape in cases:
            m, n = self.largest.get((kind, shape.k), (0, 0))
            self.largest[kind, shape.k] = (max(m, shape.m), max(n, PERIOD if kind == "whole" else shape.n))

    def refuse_invalid(self) -> None:
        """Raise where the tile breaks a rule on the problem itself."""
        broken = self.kernel.broken_rules(self.tile, self.problem, self.runtime.limits())
        if broken:
            kind = DoesNotFit if all(b.well_formed for b in broken) else InvalidTile
            first = next((b for b in broken if not b.well_formed), broken[0])
            raise kind(first.rule, first.numbers)

    def allowed(self, shape: Shape) -> bool:
        """Whether the tile's rules allow a shape."""
        return not self.kernel.broken_rules(self.tile, self.at(shape), self.runtime.limits())

    def compiled(self, shape: Shape) -> Binary:
        """The binary a shape runs (the runtime keeps those it has compiled)."""
        return self.runtime.compile(self.kernel.source(self.tile, self.at(shape), self.runtime.limits()))

    def shape_dependent(self) -> bool:
        """Whether the compiled source depends on m or n, so that only the problem's own shape runs its binary."""
        limits = self.runtime.limits()
        near = Shape(self.problem.m + 1, self.problem.n + 1, self.problem.k)
        if not self.allowed(near):
            return False
        own = self.kernel.source(self.tile, self.problem, limits)
        return own != self.kernel.source(self.tile, self.at(near), limits)

    def prove_shape(
        self, kind: Kind, shape: Shape, blocks: NDArray[np.uint8] | None, seen: set[object] | None = None
    ) -> Finding | None:
        """Run a shape (twice, but once for exact inputs) and ask every check; the first finding, with its shape."""
        what = (self.compiled(shape).id, kind, self.at(shape), shape.slice_rows, self.seed)
        if blocks is None and seen is not None and what in seen:
            self.shapes[shape.m, shape.n, shape.k] = None
            return None
        try:
            found = self._finding(kind, shape, blocks)
        except Unbounded as error:
            found = Finding("bound", str(error))
        self.shapes[shape.m, shape.n, shape.k] = None
        if found is None:
            if blocks is None and seen is not None:
                seen.add(what)
            return None
        where = f"{kind} inputs, m={shape.m} n={shape.n} k={shape.k}"
        return Finding(found.check, f"{found.detail} ({where})", found.first_wrong)

    def hazard(self, binary: Binary) -> str:
        """What the runtime says may make the binary wrong now and then; "" where it knows nothing of the kind."""
        known = getattr(self.runtime, "hazards", None)
        return "; ".join(known(binary)) if known is not None else ""

    def prove_unwavering(self, hazard: str, shape: Shape, times: int) -> Finding | None:
        """The check "hazard" on `times` runs of a shape with random inputs."""
        problem = self.at(shape)
        wanted = Wanted(formats.by_name(problem.format), shape.k, "random", self.seed, problem.x_dtype)
        limits = self.runtime.limits()
        case = self.cache.case(wanted, shape.m, PERIOD)
        packed = self.cache.whole(
            wanted, case, shape.n, limits.max_buffer_bytes, arrangement_of(self.kernel, limits), True
        )
        binary = self.compiled(shape)
        runs = repeat(self.runtime, self.kernel, self.tile, problem, binary, case.x, packed, times)
        return checks.unwavering(hazard, runs)

    def _finding(self, kind: Kind, shape: Shape, blocks: NDArray[np.uint8] | None) -> Finding | None:
        problem = self.at(shape)
        arithmetic = self.kernel.arithmetic(self.tile, problem)
        limits = self.runtime.limits()
        wanted = Wanted(
            formats.by_name(problem.format),
            shape.k,
            "random" if kind == "whole" else kind,
            self.seed,
            problem.x_dtype,
            EXACT_BITS.get(arithmetic.accumulator, 24),
            ACTIVATION_BLOCKS.get(arithmetic.activations, 0),
            problem.y_dtype if kind == "exact" else "fp32",
            SIGNIFICANT_BITS.get(arithmetic.weights.partition(" ")[0], 24) if kind == "exact" else 24,
        )
        rows = PERIOD if kind == "whole" else shape.n
        arrangement = arrangement_of(self.kernel, limits)
        case = self.cache.case(wanted, *self.largest[kind, shape.k], blocks).part(shape.m, rows)
        if kind == "whole":
            most, on_card = limits.max_buffer_bytes, limits.kind == "gpu"
            packed = self.cache.whole(wanted, case, shape.n, most, arrangement, keep_large=on_card)
        else:
            packed = self.cache.packed(wanted, case, shape.slice_rows, arrangement)
        binary = self.compiled(shape)

        arguments = (self.runtime, self.kernel, self.tile, problem, binary, case.x, packed)
        first = run(*arguments, False)
        y = first.y
        finding = first.finding or (None if kind == "special" else checks.finite(y, case.want))
        if finding is not None:
            return finding
        if case.sums is None:
            return checks.exact(y, case.want, problem.y_dtype)
        bound = element_bound(case.want, case.sums, arithmetic, shape.k, problem.x_dtype, problem.y_dtype)
        if kind == "special":
            return _special(y, case, bound, arithmetic, problem.y_dtype)
        for start in range(0, shape.n, PERIOD * PERIODS_AT_ONCE if kind == "whole" else shape.n):
            finding = self._compare(y, case.want, bound, start)
            if finding is not None:
                return finding
        if kind == "whole":
            return None
        # Only now: what writes outside a buffer does so into a band in the first run, into anything in the second.
        second = run(*arguments, True)
        return second.finding or checks.repeated(y, second.y)

    def _compare(self, y: Real, want: NDArray[np.float64], bound: NDArray[np.float64], start: int) -> Finding | None:
        """ "nmse" and "bound" of y's columns from `start` on, `want` and `bound` repeated along them."""
        columns = np.arange(start, min(y.shape[1], start + max(want.shape[1], PERIOD * PERIODS_AT_ONCE)))
        part, repeated = y[:, columns], columns % want.shape[1]
        want, bound = want[:, repeated], bound[:, repeated]
        value = checks.nmse(part, want) if part.size >= checks.NMSE_ELEMENTS else 0.0
        ratios = checks.ratios(part, want, bound)
        self.nmse, self.worst_ratio = max(self.nmse, value), max(self.worst_ratio, float(ratios.max(initial=0.0)))
        return checks.normalised(value) or checks.bounded(part, want, bound, ratios, start)


def _special(y: Real, case: Case, bound: NDArray[np.float64], arithmetic: Arithmetic, y_dtype: str) -> Finding | None:
    """ "special" of one run; of a kernel that quantizes activations, of the rows that are finite."""
    wild = wild_rows(len(y))
    if arithmetic.quantizes_activations:
        y = np.where(wild[:, None], np.float32(np.nan), y)
    most = case.sums.products + bound if arithmetic.accumulator == "fp16" and case.sums is not None else None
    return checks.special(y, case.want, bound, wild, y_dtype, most)


def _decoded_real(fmt: Format, blocks: NDArray[np.uint8] | None) -> Finding | None:
    """ "decode" of a real tensor's blocks."""
    return None if blocks is None else decoded(fmt, blocks=blocks.reshape(-1, fmt.block_bytes))


def _real_shape(problem: Problem, blocks: NDArray[np.uint8], planned: tuple[Shape, ...]) -> Shape:
    """All rows given, at the problem's k and the most activation rows that the plan has."""
    row_bytes = formats.by_name(problem.format).row_bytes(problem.k)
    if blocks.ndim != 2 or blocks.shape[1] != row_bytes or not len(blocks):
        raise UnusableInput(f"real weights for {problem.text()} are u8[rows, {row_bytes}], got {list(blocks.shape)}")
    return Shape(max((s.m for s in planned), default=problem.m), len(blocks), problem.k)


def _reached(
    proof: ShapeProof, binary: Binary, boundaries: tuple[int, int, int], shapes: list[Shape]
) -> Finding | None:
    """ "reached": a shape with a whole tile step along m and n is among those that run the problem's own binary."""
    step_m, step_n, _ = boundaries
    whole = [s for s in shapes if s.m >= step_m and s.n >= step_n]
    if not whole:
        return Finding("reached", f"no shape within the rules holds a whole step of {step_m} x {step_n}")
    if not any(proof.compiled(s).id == binary.id for s in whole):
        return Finding("reached", f"no shape of a whole step of {step_m} x {step_n} runs binary {binary.id:08x}")
    return None
