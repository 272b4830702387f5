"""The proof of a candidate for a grouped matmul: the checks of `proving`, on groups of every size that matters."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile import formats
from warptile.contracts import Arithmetic, DoesNotFit, Kernel, Problem, Runtime, Tile, Timeout, Verdict
from warptile.layouts import PackedWeights, pack_experts
from warptile.layouts.experts import expert_stride
from warptile.proof import checks
from warptile.proof.bounds import ACTIVATION_BLOCKS, ROUNDOFF, SUBNORMAL_SPACING_FP16, Unbounded, element_bound, gamma
from warptile.proof.checks import DIRECT, Finding
from warptile.proof.exact import SIGNIFICANT_BITS
from warptile.proof.groups import GroupedShape, plan
from warptile.proof.references import EXACT_BITS, PERIOD, Case, Kind, ReferenceCache, Wanted
from warptile.proof.runs import ChosenRows, run
from warptile.proof.shapes import SHAPES_OF
from warptile.proof.version import PROOF_VERSION

DISTINCT = 3
"""Different experts of a whole problem, repeated in turn."""


def prove_grouped(
    runtime: Runtime,
    kernel: Kernel,
    tile: Tile,
    problem: Problem,
    level: str,
    seed: int,
    *,
    deadline: float | None = None,
    cache: ReferenceCache | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """`proving.prove` for a grouped problem; the rules are checked by the caller.

    Weights are drawn: w[experts, n, k] is a dense weight of experts * n rows, every product of every row of x is
    bounded by `bounds`, and an id picks one; a sum over a token's experts by `summed_bound`.
    """
    proof = _Proof(runtime, kernel, tile, problem, seed, ReferenceCache() if cache is None else cache)
    end = None if deadline is None else clock() + deadline
    boundaries, block = kernel.boundaries(tile), formats.by_name(problem.format).block_size
    shapes, whole, refused = plan(SHAPES_OF.get(level, level), boundaries, problem, block, seed, proof.allowed)
    binary = runtime.compile(kernel.source(tile, problem, runtime.limits()))
    cases: list[tuple[Kind, GroupedShape]] = [("random", s) for s in shapes]
    if not problem.summed:
        cases += [("exact", s) for s in shapes[:3]]
    cases.append(("whole", whole))
    finding = None
    if not any(len(s.ids) and s.n >= boundaries[1] and proof.largest_group(s) >= boundaries[0] for s in shapes):
        finding = Finding("reached", f"no shape within the rules holds a whole step of {boundaries[:2]}")
    for kind, shape in cases:
        if finding is not None:
            break
        if end is not None and clock() > end:
            raise Timeout(f"{tile.text()}: the proof passed its deadline of {deadline} s before {shape.name}")
        finding = proof.prove_shape(kind, shape)
    return Verdict(
        right=finding is None,
        checks=DIRECT,
        failed=finding.check if finding else "",
        detail=finding.detail if finding else f"{refused} shapes are outside the tile's rules" if refused else "",
        first_wrong=finding.first_wrong if finding else None,
        shapes=tuple(proof.shapes),
        nmse=proof.nmse,
        worst_ratio=proof.worst_ratio,
        binary=binary.id,
        seeds=(seed,),
        level=level,
        version=PROOF_VERSION,
    )


def summed_bound(
    want: NDArray[np.float64], bound: NDArray[np.float64], weights: NDArray[np.float32], y_dtype: str
) -> NDArray[np.float64]:
    """The bound on the sum over j of weights[t, j] y[t, j, n], f64[t, n], where y[t, j, n] may be off by `bound`.

    Each y moves the sum by |weight| bound. A term passes one multiplication and at most top_k additions in fp32, the
    first to zero exact: gamma_{top_k + 1} of the magnitudes. Then one rounding to y's type.
    """
    size = np.abs(weights.astype(np.float64))[..., None]
    moved = (size * bound).sum(axis=1)
    most = (size * (np.abs(want) + bound)).sum(axis=1)
    computed = moved + gamma(weights.shape[1] + 1, ROUNDOFF["fp32"]) * most
    store = ROUNDOFF[y_dtype] * (most + computed) + (SUBNORMAL_SPACING_FP16 if y_dtype == "fp16" else 0.0)
    total: NDArray[np.float64] = computed + store
    return total


@dataclass
class _Proof:
    """What the shapes of one proof share."""

    runtime: Runtime
    kernel: Kernel
    tile: Tile
    problem: Problem
    seed: int
    cache: ReferenceCache
    shapes: dict[tuple[int, int, int], None] = field(default_factory=dict)
    nmse: float = 0.0
    worst_ratio: float = 0.0

    def allowed(self, shape: GroupedShape) -> bool:
        """Whether the tile's rules allow a shape."""
        limits = self.runtime.limits()
        if shape.parts > 1 and limits.arrangement == "quads":
            return False
        return not self.kernel.broken_rules(self.tile, shape.of(self.problem), limits)

    @staticmethod
    def largest_group(shape: GroupedShape) -> int:
        """Rows of the largest group."""
        inside = shape.ids[(shape.ids >= 0) & (shape.ids < shape.experts)]
        return int(np.bincount(inside).max(initial=0)) if inside.size else 0

    def prove_shape(self, kind: Kind, shape: GroupedShape) -> Finding | None:
        """Run a shape (twice, but once for exact inputs) and ask every check; the first finding, with its shape."""
        try:
            found = self._finding(kind, shape)
        except Unbounded as error:
            found = Finding("bound", str(error))
        self.shapes[shape.tokens, shape.n, shape.k] = None
        if found is None:
            return None
        where = f"{kind} inputs, {shape.name}: m={shape.tokens} n={shape.n} k={shape.k} experts={shape.experts}"
        return Finding(found.check, f"{found.detail} ({where})", found.first_wrong)

    def _finding(self, kind: Kind, shape: GroupedShape) -> Finding | None:
        problem = shape.of(self.problem)
        arithmetic = self.kernel.arithmetic(self.tile, problem)
        fmt = formats.by_name(problem.format)
        wanted = Wanted(
            fmt,
            shape.k,
            "random" if kind == "whole" else kind,
            self.seed,
            problem.x_dtype,
            EXACT_BITS.get(arithmetic.accumulator, 24),
            ACTIVATION_BLOCKS.get(arithmetic.activations, 0),
            problem.y_dtype if kind == "exact" else "fp32",
            SIGNIFICANT_BITS.get(arithmetic.weights.partition(" ")[0], 24) if kind == "exact" else 24,
        )
        distinct, rows = (
            (min(DISTINCT, shape.experts), min(PERIOD, shape.n)) if kind == "whole" else (shape.experts, shape.n)
        )
        case = self.cache.case(wanted, problem.x_rows, distinct * rows)
        packed = self._packed(wanted, case, shape, distinct, rows)
        binary = self.runtime.compile(self.kernel.source(self.tile, problem, self.runtime.limits()))
        weights = None
        if problem.summed:
            weights = np.random.default_rng(self.seed).uniform(-1, 1, shape.ids.shape).astype(np.float32)
        chosen = ChosenRows(np.ascontiguousarray(shape.ids), weights)
        want, bound = self._wanted(case, arithmetic, problem, shape, weights, distinct, rows)

        def once(again: bool) -> tuple[NDArray[Any], Finding | None]:
            done = run(self.runtime, self.kernel, self.tile, problem, binary, case.x, packed, again, chosen)
            return done.y, done.finding or checks.finite(done.y, want)

        try:
            y, finding = once(again=False)
        except DoesNotFit:
            if shape.parts > 1:
                return None
            raise
        if finding is not None:
            return finding
        if bound is None:
            return checks.exact(y, want, problem.y_dtype)
        value = checks.nmse(y, want) if y.size >= checks.NMSE_ELEMENTS else 0.0
        ratios = checks.ratios(y, want, bound)
        self.nmse, self.worst_ratio = max(self.nmse, value), max(self.worst_ratio, float(ratios.max(initial=0.0)))
        finding = checks.normalised(value) or checks.bounded(y, want, bound, ratios)
        if finding is not None or kind == "whole":
            return finding
        second, finding = once(again=True)
        return finding or checks.repeated(y, second)

    def _packed(self, wanted: Wanted, case: Case, shape: GroupedShape, distinct: int, rows: int) -> PackedWeights:
        limits = self.runtime.limits()
        blocks = case.blocks.reshape(distinct, rows, -1)
        if rows < shape.n:
            blocks = blocks[:, np.arange(shape.n) % rows]
        most = limits.max_buffer_bytes
        if shape.parts > 1:
            stride = 4 * expert_stride(wanted.fmt, shape.n, shape.k, limits.arrangement)
            most = stride * -(-shape.experts // shape.parts)
        flat = np.ascontiguousarray(blocks)
        return pack_experts(wanted.fmt, flat, shape.experts, shape.n, shape.k, most, limits.arrangement)

    def _wanted(
        self,
        case: Case,
        arithmetic: Arithmetic,
        problem: Problem,
        shape: GroupedShape,
        weights: NDArray[np.float32] | None,
        distinct: int,
        rows: int,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """(want, bound) f64[y_rows, n], from the products of every row of x with every expert; no bound where exact."""
        ids = shape.ids.reshape(-1)
        named = (ids >= 0) & (ids < shape.experts)
        x_row = np.arange(len(ids)) if problem.x_slots else np.arange(len(ids)) // problem.top_k
        column = np.where(named, ids, 0)[:, None] % distinct * rows + np.arange(shape.n)[None, :] % rows

        def of_slots(products: NDArray[np.float64]) -> NDArray[np.float64]:
            picked: NDArray[np.float64] = np.where(named[:, None], products[x_row[:, None], column], 0.0)
            return picked

        want = of_slots(case.want)
        if case.sums is None:
            return want, None
        every = element_bound(case.want, case.sums, arithmetic, shape.k, problem.x_dtype, problem.y_dtype)
        bound = of_slots(every)
        if weights is None:
            return want, bound
        by_token = (shape.tokens, problem.top_k, shape.n)
        want, bound = want.reshape(by_token), bound.reshape(by_token)
        total = (weights.astype(np.float64)[..., None] * want).sum(axis=1)
        return total, summed_bound(want, bound, weights, problem.y_dtype)
