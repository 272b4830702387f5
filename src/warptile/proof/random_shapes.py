"""Random shapes under a time budget: what the tile's boundaries do not name."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from warptile import formats
from warptile.contracts import Kernel, Problem, Runtime, Tile, Verdict
from warptile.proof.checks import DIRECT, Finding
from warptile.proof.proving import ShapeProof
from warptile.proof.references import Kind, ReferenceCache
from warptile.proof.shapes import Shape
from warptile.proof.version import PROOF_VERSION

KINDS: tuple[Kind, ...] = ("random", "exact", "special")
SHAPES_A_SEED = 12
MOST_REFUSED = 500
MOST_STEPS = 5.0


def prove_random(
    runtime: Runtime,
    kernel: Kernel,
    tile: Tile,
    problem: Problem,
    seconds: float,
    seed: int = 0,
    *,
    cache: ReferenceCache | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """Prove a tile on shapes drawn for `seconds`, one at least where its rules allow any.

    m, n and k are log-uniform from 1 (k: one block) to 5 steps of the tile, some have their rows in slices of one or
    two steps; inputs are random, exact and special in turn, anew every 12 shapes from seeds `seed`, `seed` + 1, ...
    The verdict names them all, and the shape that was wrong. Raises what `prove` raises.
    """
    held = ReferenceCache() if cache is None else cache
    proof = ShapeProof(runtime, kernel, tile, problem, seed, held)
    proof.refuse_invalid()
    binary = proof.compiled(Shape(problem.m, problem.n, problem.k))
    block = formats.by_name(problem.format).block_size
    steps = np.array([max(1, step) for step in kernel.boundaries(tile)], np.float64)
    steps[2] = max(1.0, steps[2] / block)
    rng = np.random.default_rng(seed)
    kinds = KINDS if kernel.arithmetic(tile, problem).special else KINDS[:2]
    end = clock() + seconds
    finding: Finding | None = None
    done, refused = 0, 0
    while finding is None and refused < MOST_REFUSED and (done == 0 or clock() < end):
        m, n, blocks = (int(size) for size in np.exp(rng.uniform(0, np.log(MOST_STEPS * steps + 1))))
        sliced = int(steps[1]) * int(rng.integers(1, 3)) if rng.random() < 0.5 else 0
        shape = Shape(m, n, blocks * block, sliced if sliced < n else 0)
        if not proof.allowed(shape):
            refused += 1
            continue
        proof.seed = seed + done // SHAPES_A_SEED
        kind = kinds[done % len(kinds)]
        proof.expect([(kind, shape)])
        finding = proof.prove_shape(kind, shape, None)
        done += 1
    detail = finding.detail if finding else f"{done} random shapes" + (f", {refused} refused" if refused else "")
    return Verdict(
        right=finding is None,
        checks=DIRECT,
        failed=finding.check if finding else "",
        detail=detail,
        first_wrong=finding.first_wrong if finding else None,
        shapes=tuple(proof.shapes),
        nmse=proof.nmse,
        worst_ratio=proof.worst_ratio,
        binary=binary.id,
        seeds=tuple(range(seed, proof.seed + 1)),
        level="deep",
        version=PROOF_VERSION,
    )
