"""Candidate tiles of `vulkan.mul_mat_vecq`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from warptile.contracts import Limits, Problem
from warptile.kernels.vulkan.mul_mat_vecq.rules import MOST_WORDS
from warptile.kernels.vulkan.mul_mat_vecq.tile import CHUNK, MulMatVecqTile
from warptile.kernels.vulkan.register_tile import widest_load

LANES_N = (1, 2, 4, 8, 16, 32)
THREAD_N = (1, 2, 4, 8)
CHUNKS = (1, 2, 4)
COLUMNS = (1, 2, 4, 8)
WORKGROUPS = (128, 256, 512, 1024)
LARGEST_WORKGROUP = 1024
MOST_STEPS = 8


def space(problem: Problem, limits: Limits) -> Iterator[MulMatVecqTile]:
    """Lanes along n, parts of k by powers of two and by what divides k evenly, rows a lane, chunks a step.

    Activations are quantized by the workgroup while they fit its shared memory and m is one pass, else by a pre-pass.
    Nothing on a software device: it has no memory latency to hide, and `mul_mat_vec` and `mul_mmq` leave out the
    shared stage. Nothing where the device does not accelerate the dot product.
    """
    if limits.kind == "software" or not limits.has("int_dot_accelerated"):
        return
    all_chunks = problem.k // CHUNK
    sums = "shuffle" if limits.has("subgroup_shuffle") else "shared"
    columns = [c for c in COLUMNS if c < 2 * problem.m][-2:]
    for lanes_n, thread_n, chunks, column in itertools.product(LANES_N, THREAD_N, CHUNKS, columns):
        load_n = widest_load(problem.n, thread_n)
        if load_n < min(thread_n, 4) or thread_n * chunks > MOST_WORDS // 4:
            continue
        for split_k in _parts(lanes_n, chunks, all_chunks, limits.subgroup):
            for staging, prefetch in itertools.product(("shared", "scratch"), (0, 1)):
                tile = MulMatVecqTile(lanes_n, split_k, thread_n, column, load_n, chunks, prefetch, staging, sums)
                if prefetch and tile.steps(problem.k) == 1:
                    continue
                yield tile


def _parts(lanes_n: int, chunks: int, all_chunks: int, subgroup: int) -> list[int]:
    """Parts of k that make a workgroup of whole subgroups: of a usual size, or with every step of every part full."""
    usual = {size // lanes_n for size in WORKGROUPS if size % lanes_n == 0}
    whole = {all_chunks // (chunks * steps) for steps in range(1, MOST_STEPS + 1) if all_chunks % (chunks * steps) == 0}
    most = all_chunks // chunks
    return sorted(
        p for p in usual | whole if 1 <= p <= most and p * lanes_n % subgroup == 0 and p * lanes_n <= LARGEST_WORKGROUP
    )
