"""What raced arms compute, before the race and after it: a tile that is right only the first time must not win."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from warptile.contracts import Runtime, Wrong
from warptile.contracts.samples import storage_dtype
from warptile.race.bench import Bench, Contender

POISON_BYTE = 0xFF
"""Filled with it, every number of y is NaN."""

COMPARED_BYTES = 4 << 20
"""Of each output, its start: what accumulates or relies on what was there is wrong everywhere."""


def outputs(runtime: Runtime, bench: Bench, contenders: Sequence[Contender]) -> list[bytes]:
    """A digest of the start of y[m, n] of each contender, run once on the first weight copy over a poisoned y."""
    problem = bench.problem
    nbytes = problem.y_rows * problem.n * storage_dtype(problem.y_dtype).itemsize
    poison = np.full(nbytes, POISON_BYTE, np.uint8)
    found = []
    for contender in contenders:
        runtime.write(bench.y, poison)
        runtime.execute(contender.launches[0])
        start = runtime.download(bench.y, np.uint8, (min(nbytes, COMPARED_BYTES),))
        found.append(hashlib.blake2b(start.data, digest_size=16).digest())
    return found


def check_unchanged(contenders: Sequence[Contender], before: Sequence[bytes], after: Sequence[bytes]) -> None:
    """Raise Wrong where a contender computes something else than it did before it was timed."""
    for contender, one, other in zip(contenders, before, after, strict=True):
        if one != other:
            raise Wrong(f"{contender.arm.tile}: after the race it computes something else than before, on equal inputs")
